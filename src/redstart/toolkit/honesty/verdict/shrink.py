"""Find a smaller part of a change that still passes: bounded delta debugging over its hunks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from redstart.toolkit.honesty.verdict.hunks import (
    ChangeHunk,
    Files,
    compose,
    get_change_reader,
    has_same_meaning,
    has_valid_syntax,
)

HunkNumbers = frozenset[int]


class ShrinkBudget(NamedTuple):
    """The limits for shrinking."""

    runs: int = 24
    seconds: float = 300.0


class ShrinkResult(NamedTuple):
    """The result of shrinking: the numbers of the needed hunks."""

    needed_hunks: HunkNumbers
    runs: int
    """How many parts were tested."""
    is_complete: bool
    """Whether the change was tried without each needed hunk; False if the budget ran out first."""


class _Spent(Exception):
    """Raised when the budget is exhausted."""


async def shrink(
    before: Files,
    hunks: Sequence[ChangeHunk],
    is_green: Callable[[HunkNumbers], Awaitable[bool]],
    *,
    budget: ShrinkBudget | None = None,
    clock: Callable[[], float],
    is_acceptable: Callable[[Files], bool] = lambda _: True,
) -> ShrinkResult:
    """Find a passing part, as small as possible, of a change that passes as a whole. Raises what `is_green` raises.

    `clock` returns the seconds spent; record its values if the search must be exactly repeatable.
    `is_acceptable` judges the files of a part without a test run, and must accept the whole.
    `is_green` is called at most once per part, never for a part that is not acceptable or whose files do not parse, nor
    for the whole.
    """
    search = _Search(before, hunks, is_green, budget or ShrinkBudget(), clock, is_acceptable)
    return await search.find_smallest()


class _Search:
    def __init__(
        self,
        before: Files,
        hunks: Sequence[ChangeHunk],
        is_green: Callable[[HunkNumbers], Awaitable[bool]],
        budget: ShrinkBudget,
        clock: Callable[[], float],
        is_acceptable: Callable[[Files], bool],
    ) -> None:
        self._before, self._hunks, self._is_green = before, hunks, is_green
        self._is_acceptable = is_acceptable
        self._budget, self._clock, self._began = budget, clock, clock()
        self._results: dict[tuple[tuple[str, bytes | None], ...], bool] = {}
        self._runs = 0
        self._smallest: HunkNumbers = frozenset(range(len(hunks)))

    async def find_smallest(self) -> ShrinkResult:
        try:
            await self._without_layout()
            await self._try_single_hunks()
            await self._halve()
        except _Spent:
            return ShrinkResult(self._smallest, self._runs, is_complete=False)
        return ShrinkResult(self._smallest, self._runs, is_complete=True)

    async def _without_layout(self) -> None:
        """Leave out, all at once, hunks without effect, then hunks that only add names that no kept hunk uses."""
        layout = frozenset(
            number
            for number in self._smallest
            if has_same_meaning(self._before, compose(self._before, self._hunks, {number}))
        )
        if layout and layout != self._smallest:
            await self._try(self._smallest - layout)
        idle = self._smallest - _in_use(self._before, self._hunks, self._smallest)
        if idle and idle != self._smallest:
            await self._try(self._smallest - idle)

    async def _try_single_hunks(self) -> None:
        """Try each hunk alone, the likeliest first: most fixes are one hunk, and a few hunks are cheap to try."""
        if 1 < len(self._smallest) <= 4:
            for number in sorted(self._smallest, key=self._rank_hunk, reverse=True):
                if await self._try(frozenset({number})):
                    return

    def _rank_hunk(self, number: int) -> tuple[int, int]:
        """Rank a hunk: a fix changes existing lines, so hunks that only add lines rank lower."""
        hunk = self._hunks[number]
        return (hunk.end > hunk.start, -len(hunk.lines or ()))

    async def _halve(self) -> None:
        """Run Zeller's ddmin on the remaining hunks."""
        parts = 2
        while len(self._smallest) >= 2:
            ordered = sorted(self._smallest, key=self._rank_hunk, reverse=True)
            size = -(-len(ordered) // parts)
            pieces = [frozenset(ordered[index : index + size]) for index in range(0, len(ordered), size)]
            if await self._try_any(pieces):
                parts = 2
            elif len(pieces) > 2 and await self._try_any([self._smallest - piece for piece in reversed(pieces)]):
                parts = max(parts - 1, 2)
            elif len(pieces) >= len(ordered):
                return
            else:
                parts = min(2 * parts, len(ordered))

    async def _try_any(self, candidates: Sequence[HunkNumbers]) -> bool:
        for candidate in candidates:
            if await self._try(candidate):
                return True
        return False

    async def _try(self, selected: HunkNumbers) -> bool:
        """Return whether a part passes; remember the smallest part that does."""
        files = compose(self._before, self._hunks, selected)
        key = tuple(sorted(files.items()))
        if key not in self._results:
            is_candidate = has_valid_syntax(self._before, files) and self._is_acceptable(files)
            self._results[key] = is_candidate and await self._run(selected)
        if self._results[key] and len(selected) < len(self._smallest):
            self._smallest = selected
        return self._results[key]

    async def _run(self, selected: HunkNumbers) -> bool:
        if self._runs >= self._budget.runs or self._clock() - self._began >= self._budget.seconds:
            raise _Spent
        self._runs += 1
        return await self._is_green(selected)


def _in_use(before: Files, hunks: Sequence[ChangeHunk], selected: HunkNumbers) -> HunkNumbers:
    """Return the hunks that do more than add names that nothing outside the hunk uses."""
    return frozenset(number for number in selected if not _is_unused_addition(before, hunks, selected, number))


def _is_unused_addition(before: Files, hunks: Sequence[ChangeHunk], selected: HunkNumbers, number: int) -> bool:
    hunk = hunks[number]
    reader = get_change_reader(hunk.path)
    if reader is None or hunk.end > hunk.start or hunk.lines is None:
        return False
    names = reader.list_added_names(b"".join(hunk.lines))
    if names is None:
        return False
    other_texts = compose(before, hunks, selected - {number}).values()
    return not any(name.encode() in text for name in names for text in other_texts if text is not None)
