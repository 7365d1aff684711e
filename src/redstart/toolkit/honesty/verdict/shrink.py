"""Find a smaller part of a change that still passes: bounded delta debugging over its groups of hunks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from redstart.toolkit.honesty.verdict.hunk_groups import HunkNumbers
from redstart.toolkit.honesty.verdict.hunks import (
    ChangeHunk,
    Files,
    compose,
    get_change_reader,
    has_same_meaning,
    has_valid_syntax,
)


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
    groups: Sequence[HunkNumbers] = (),
) -> ShrinkResult:
    """Find a passing part, as small as possible, of a change that passes as a whole. Raises what `is_green` raises.

    `clock` returns the seconds spent; record its values if the search must be exactly repeatable.
    `is_acceptable` judges the files of a part without a test run, and must accept the whole.
    `is_green` is called at most once per part, never for a part that is not acceptable or whose files do not parse, nor
    for the whole. The hunks of a group are kept or left out together; without groups, each hunk is on its own.
    """
    groups = groups or [frozenset({number}) for number in range(len(hunks))]
    search = _Search(before, hunks, groups, is_green, budget or ShrinkBudget(), clock, is_acceptable)
    return await search.find_smallest()


class _Search:
    def __init__(
        self,
        before: Files,
        hunks: Sequence[ChangeHunk],
        groups: Sequence[HunkNumbers],
        is_green: Callable[[HunkNumbers], Awaitable[bool]],
        budget: ShrinkBudget,
        clock: Callable[[], float],
        is_acceptable: Callable[[Files], bool],
    ) -> None:
        self._before, self._hunks, self._groups, self._is_green = before, hunks, groups, is_green
        self._is_acceptable = is_acceptable
        self._budget, self._clock, self._began = budget, clock, clock()
        self._results: dict[tuple[tuple[str, bytes | None], ...], bool] = {}
        self._runs = 0
        self._smallest: HunkNumbers = frozenset(range(len(hunks)))

    async def find_smallest(self) -> ShrinkResult:
        try:
            await self._without_layout()
            await self._try_single_groups()
            await self._halve()
        except _Spent:
            return ShrinkResult(self._smallest, self._runs, is_complete=False)
        return ShrinkResult(self._smallest, self._runs, is_complete=True)

    async def _without_layout(self) -> None:
        """Leave out, all at once, groups without effect, then those that only add names that no kept hunk uses."""
        layout = [
            group for group in self._groups if has_same_meaning(self._before, compose(self._before, self._hunks, group))
        ]
        await self._try_without(layout)
        await self._try_without([group for group in self._list_kept_groups() if self._is_unused_addition(group)])

    async def _try_without(self, groups: Sequence[HunkNumbers]) -> None:
        dropped = _unite(groups)
        if dropped and dropped != self._smallest:
            await self._try(self._smallest - dropped)

    async def _try_single_groups(self) -> None:
        """Try each group alone, the likeliest first: most fixes are one group, and a few are cheap to try."""
        ordered = self._list_kept_groups()
        if 1 < len(ordered) <= 4:
            for group in ordered:
                if await self._try(group):
                    return

    def _list_kept_groups(self) -> list[HunkNumbers]:
        """List the groups of the smallest passing part, the likeliest to be needed first."""
        return sorted((group for group in self._groups if group <= self._smallest), key=self._rank_group, reverse=True)

    def _rank_group(self, group: HunkNumbers) -> tuple[bool, int, int]:
        """Rank a group: a fix changes existing lines, so groups that only add lines rank lower."""
        hunks = [self._hunks[number] for number in group]
        lines = sum(len(hunk.lines or ()) for hunk in hunks)
        return (any(hunk.end > hunk.start for hunk in hunks), -lines, -min(group))

    async def _halve(self) -> None:
        """Run Zeller's ddmin on the remaining groups."""
        parts = 2
        while len(ordered := self._list_kept_groups()) >= 2:
            size = -(-len(ordered) // parts)
            pieces = [_unite(ordered[index : index + size]) for index in range(0, len(ordered), size)]
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

    def _is_unused_addition(self, group: HunkNumbers) -> bool:
        """Return whether the group is one hunk that only adds names which nothing outside of it uses."""
        hunk, reader = self._hunks[min(group)], get_change_reader(self._hunks[min(group)].path)
        if len(group) > 1 or reader is None or hunk.end > hunk.start or hunk.lines is None:
            return False
        names = reader.list_added_names(b"".join(hunk.lines))
        if names is None:
            return False
        other_texts = compose(self._before, self._hunks, self._smallest - group).values()
        return not any(name.encode() in text for name in names for text in other_texts if text is not None)

    async def _run(self, selected: HunkNumbers) -> bool:
        if self._runs >= self._budget.runs or self._clock() - self._began >= self._budget.seconds:
            raise _Spent
        self._runs += 1
        return await self._is_green(selected)


def _unite(groups: Sequence[HunkNumbers]) -> HunkNumbers:
    return frozenset[int]().union(*groups)
