"""What retrieval asks of the code of a language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class LineRange(NamedTuple):
    start: int
    """From 1."""
    end: int


class CodePlace(NamedTuple):
    path: str
    start: int
    end: int


class ReadTest(NamedTuple):
    """A test function: where it stands, and what it speaks of."""

    place: CodePlace
    words: Sequence[str]
    """The names it uses, those that it imports first."""
    imports: Sequence[str]
    """Files of the tree that it imports from."""
    helpers: Sequence[CodePlace] = ()
    """What it uses of its own file."""


class CodeReader:
    """Reads the files of one tree in one language. A language that reads less of its code keeps the defaults."""

    def read_test(self, path: str, names: Sequence[str]) -> ReadTest | None:
        """The test with these names around it, or as much of the file as they lead to; None if it cannot be read."""
        return None

    def line_ranges(self, path: str) -> list[LineRange]:
        """The lines of each function and class, nested ones too."""
        return []

    def imported_files(self, path: str) -> set[str]:
        """The files of the tree that this one imports."""
        return set()
