"""Search a line of commits for the first one at which each of several tests fails. Pure: the caller runs the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

MOST_UNTESTABLE = 16
"""After so many commits without a result for a test, its search ends."""


class CommitResult(Enum):
    """How a test ends at a commit."""

    good = auto()
    absent = auto()
    """The test does not exist there, so it does not fail."""
    bad = auto()
    untestable = auto()


class OpenRange(NamedTuple):
    """The first bad commit lies between these indexes, or is `bad`."""

    good: int
    """-1 if no commit is known to be good."""
    bad: int


class NextRun(NamedTuple):
    """What to run next."""

    commit: int
    """The index of the commit."""
    tests: tuple[str, ...]


class FoundCommit(NamedTuple):
    """The result of the search for one test."""

    commit: int
    """The index of the first commit that is known to be bad."""
    unknown: tuple[int, ...]
    """The commits right before it that have no result: one of them may be the first bad one."""
    added: bool
    """Whether the test does not exist before."""


class BisectionSearch:
    """Narrows the ranges of all tests together: tests of one range share each run."""

    def __init__(self, ranges: Mapping[str, OpenRange]) -> None:
        self._ranges = dict(ranges)
        self._results: dict[str, dict[int, CommitResult]] = {id_: {} for id_ in ranges}

    def choose_next(self) -> NextRun | None:
        """Choose a commit in the range that most tests share. None if every search has ended."""
        still_open = Counter(range_ for id_, range_ in self._ranges.items() if self._list_candidates(id_))
        if not still_open:
            return None
        range_, _ = still_open.most_common(1)[0]
        id_ = next(id_ for id_, own in self._ranges.items() if own == range_ and self._list_candidates(id_))
        candidates = self._list_candidates(id_)
        aim = range_.good + (range_.bad - range_.good) * _get_share(self._count_untestable(id_))
        commit = min(candidates, key=lambda index: (abs(index - aim), index))
        return NextRun(commit, tuple(id_ for id_ in self._ranges if commit in self._list_candidates(id_)))

    def record(self, commit: int, results: Mapping[str, CommitResult]) -> None:
        """Record how tests end at a commit."""
        for id_, result in results.items():
            self._results[id_][commit] = result
            good, bad = self._ranges[id_]
            if result is CommitResult.bad:
                self._ranges[id_] = OpenRange(good, commit)
            elif result is not CommitResult.untestable:
                self._ranges[id_] = OpenRange(commit, bad)

    def get_found(self, id_: str) -> FoundCommit:
        """Return the result for a test after the search."""
        good, bad = self._ranges[id_]
        unknown = tuple(range(good + 1, bad))
        return FoundCommit(bad, unknown, good < 0 or self._results[id_].get(good) is CommitResult.absent)

    def _list_candidates(self, id_: str) -> list[int]:
        if self._count_untestable(id_) >= MOST_UNTESTABLE:
            return []
        good, bad = self._ranges[id_]
        return [index for index in range(good + 1, bad) if index not in self._results[id_]]

    def _count_untestable(self, id_: str) -> int:
        good, bad = self._ranges[id_]
        results = self._results[id_].items()
        return sum(result is CommitResult.untestable and good < index < bad for index, result in results)


def _get_share(skipped: int) -> float:
    """Return where in a range to look next: 1/2, 3/4, 1/4, 7/8, 3/8, 5/8, ...

    Commits that cannot run lie side by side, mostly at the old end, so the next one is tried far from the last.
    """
    share, step, number = 0.0, 0.5, skipped + 1
    while number:
        number, digit = divmod(number, 2)
        share += digit * step
        step /= 2
    return 1 - share
