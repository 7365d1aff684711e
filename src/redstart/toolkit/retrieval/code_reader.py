"""How retrieval reads the code of a language."""

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
    """A test function: where it is, and what it refers to."""

    place: CodePlace
    names: Sequence[str]
    """The names that it uses, imported names first."""
    imports: Sequence[str]
    """Files of the tree that it imports from."""
    helpers: Sequence[CodePlace] = ()
    """What it uses from its own file."""


class CodeReader:
    """Reads the files of one tree in one language. A language with less support keeps the defaults."""

    def read_test(self, path: str, names: Sequence[str]) -> ReadTest | None:
        """Return the test with these names around it, or what the names lead to; None if it cannot be read."""
        return None

    def list_line_ranges(self, path: str) -> list[LineRange]:
        """Return the lines of each function and class, including nested ones."""
        return []

    def list_imported_files(self, path: str) -> set[str]:
        """Return the files of the tree that this file imports."""
        return set()
