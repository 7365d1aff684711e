"""What a language brings to notice a change that games the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

UNREADABLE_CODE = "unreadable_code"
"""The kind of a mark on code that is only made or loaded as it runs."""


class RuleMark(NamedTuple):
    """Something that a rule noticed. Two marks with the same kind and key are the same thing at another place."""

    kind: str
    key: str
    line: int
    words: str


class Change(NamedTuple):
    """The source files that a change touches, old and new (None where there is none), and what its tests are."""

    before: Mapping[str, bytes | None]
    after: Mapping[str, bytes | None]
    tests: Mapping[str, bytes]
    """Every file of the tests as it was at the baseline, with the data that they read and the code with doctests."""


class Tripwires:
    """The rules of one language for one change. Made for the change, so that what files share is read once.

    They are asked about the files of their language, and about every file that no language has rules for.
    """

    def marks(self, path: str, text: bytes) -> Iterable[RuleMark]:
        """What stands out in one version of a file. What its old version shows too is not held against the change."""
        return ()

    def answers(self, path: str) -> Iterable[RuleMark]:
        """What in the new version of a changed file knows what the tests ask."""
        return ()

    def faults(self, path: str) -> Iterable[RuleMark]:
        """What is wrong with the new version of a changed file as a whole, whatever the old one was."""
        return ()

    def of_new_file(self, path: str) -> Iterable[RuleMark]:
        """What is wrong with a new file by its path. Asked about files of every language."""
        return ()

    def may_be_expected(self, path: str) -> bool:
        """Whether a file of this name may hold nothing but what tests expect."""
        return True
