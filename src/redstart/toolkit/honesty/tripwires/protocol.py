"""The interface by which a language detects a change that games the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

UNREADABLE_CODE = "unreadable_code"
"""The kind of a mark on code that is built or loaded only at run time."""


class RuleMark(NamedTuple):
    """A place that a rule flagged. Two marks with the same kind and key are the same thing at another place."""

    kind: str
    key: str
    line: int
    message: str


class Change(NamedTuple):
    """The source files that a change touches, old and new (None if absent), and the tests."""

    before: Mapping[str, bytes | None]
    after: Mapping[str, bytes | None]
    tests: Mapping[str, bytes]
    """Every test file as it was at the baseline, with the data that tests read and the code with doctests."""


class Tripwires:
    """The rules of one language for one change. Created per change, so that shared input is read once.

    They apply to the files of their language, and to every file that no language has rules for.
    """

    def find_marks(self, path: str, text: bytes) -> Iterable[RuleMark]:
        """Yield the marks in one version of a file. Marks that the old version has too do not count."""
        return ()

    def find_answers(self, path: str) -> Iterable[RuleMark]:
        """Yield marks for code in the new version of a changed file that knows the tests' inputs."""
        return ()

    def find_faults(self, path: str) -> Iterable[RuleMark]:
        """Yield the faults of the new version of a changed file as a whole, whatever the old version was."""
        return ()

    def find_new_file_faults(self, path: str) -> Iterable[RuleMark]:
        """Yield the faults of a new file by its path. Called for files of every language."""
        return ()

    def can_hold_expected_data(self, path: str) -> bool:
        """Return whether a file of this name may contain only expected values of tests."""
        return True
