"""Finds the smallest part of a change that still passes: bounded delta debugging over its hunks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from redstart.toolkit.honesty.verdict.hunks import ChangeHunk, Files, compose, parses, reader_of, says_the_same

Chosen = frozenset[int]


class ShrinkBudget(NamedTuple):
    """The limits for shrinking."""

    runs: int = 24
    seconds: float = 300.0


class ShrinkResult(NamedTuple):
    """The result of shrinking: the numbers of the needed hunks."""

    kept: Chosen
    runs: int
    """How many parts were tested."""
    complete: bool
    """Whether no single hunk of `kept` can be left out; False if the budget ran out first."""


class _Spent(Exception):
    """Raised when the budget is exhausted."""


async def shrink(
    before: Files,
    hunks: Sequence[ChangeHunk],
    is_green: Callable[[Chosen], Awaitable[bool]],
    *,
    budget: ShrinkBudget | None = None,
    clock: Callable[[], float],
) -> ShrinkResult:
    """Find the smallest passing part of a change that passes as a whole. Raises what `is_green` raises.

    `clock` returns the seconds spent; record its values if the search must be exactly repeatable.
    `is_green` is called at most once per part, never for a part whose files do not parse, nor for the whole.
    """
    search = _Search(before, hunks, is_green, budget or ShrinkBudget(), clock)
    return await search.smallest()


class _Search:
    def __init__(
        self,
        before: Files,
        hunks: Sequence[ChangeHunk],
        is_green: Callable[[Chosen], Awaitable[bool]],
        budget: ShrinkBudget,
        clock: Callable[[], float],
    ) -> None:
        self._before, self._hunks, self._is_green = before, hunks, is_green
        self._budget, self._clock, self._began = budget, clock, clock()
        self._known: dict[tuple[tuple[str, bytes | None], ...], bool] = {}
        self._runs = 0
        self._best: Chosen = frozenset(range(len(hunks)))

    async def smallest(self) -> ShrinkResult:
        try:
            await self._without_layout()
            await self._one_alone()
            await self._halve()
        except _Spent:
            return ShrinkResult(self._best, self._runs, complete=False)
        return ShrinkResult(self._best, self._runs, complete=True)

    async def _without_layout(self) -> None:
        """Leave out, all at once, hunks without effect, then hunks that only add names that no kept hunk uses."""
        layout = frozenset(
            number for number in self._best if says_the_same(self._before, compose(self._before, self._hunks, {number}))
        )
        if layout and layout != self._best:
            await self._try(self._best - layout)
        idle = self._best - _in_use(self._before, self._hunks, self._best)
        if idle and idle != self._best:
            await self._try(self._best - idle)

    async def _one_alone(self) -> None:
        """Try each hunk alone, the likeliest first: most fixes are one hunk, and a few hunks are cheap to try."""
        if 1 < len(self._best) <= 4:
            for number in sorted(self._best, key=self._likelihood, reverse=True):
                if await self._try(frozenset({number})):
                    return

    def _likelihood(self, number: int) -> tuple[int, int]:
        """Rank a hunk: a fix changes existing lines, so hunks that only add lines rank lower."""
        hunk = self._hunks[number]
        return (hunk.end > hunk.start, -len(hunk.lines or ()))

    async def _halve(self) -> None:
        """Run Zeller's ddmin on the remaining hunks."""
        parts = 2
        while len(self._best) >= 2:
            ordered = sorted(self._best, key=self._likelihood, reverse=True)
            size = -(-len(ordered) // parts)
            pieces = [frozenset(ordered[at : at + size]) for at in range(0, len(ordered), size)]
            if await self._any(pieces):
                parts = 2
            elif len(pieces) > 2 and await self._any([self._best - piece for piece in reversed(pieces)]):
                parts = max(parts - 1, 2)
            elif len(pieces) >= len(ordered):
                return
            else:
                parts = min(2 * parts, len(ordered))

    async def _any(self, candidates: Sequence[Chosen]) -> bool:
        for candidate in candidates:
            if await self._try(candidate):
                return True
        return False

    async def _try(self, chosen: Chosen) -> bool:
        """Return whether a part passes; remember the smallest part that does."""
        files = compose(self._before, self._hunks, chosen)
        key = tuple(sorted(files.items()))
        if key not in self._known:
            self._known[key] = parses(self._before, files) and await self._run(chosen)
        if self._known[key] and len(chosen) < len(self._best):
            self._best = chosen
        return self._known[key]

    async def _run(self, chosen: Chosen) -> bool:
        if self._runs >= self._budget.runs or self._clock() - self._began >= self._budget.seconds:
            raise _Spent
        self._runs += 1
        return await self._is_green(chosen)


def _in_use(before: Files, hunks: Sequence[ChangeHunk], chosen: Chosen) -> Chosen:
    """Return the hunks that do more than add names that nothing outside the hunk uses."""
    return frozenset(number for number in chosen if not _only_adds_unused(before, hunks, chosen, number))


def _only_adds_unused(before: Files, hunks: Sequence[ChangeHunk], chosen: Chosen, number: int) -> bool:
    hunk = hunks[number]
    reader = reader_of(hunk.path)
    if reader is None or hunk.end > hunk.start or hunk.lines is None:
        return False
    names = reader.added_names(b"".join(hunk.lines))
    if names is None:
        return False
    rest = compose(before, hunks, chosen - {number}).values()
    return not any(name.encode() in text for name in names for text in rest if text is not None)
