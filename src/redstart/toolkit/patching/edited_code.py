"""What is asked of the code in a language, to judge and to place an edit of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from redstart.toolkit.languages.registry import language_of_file
from redstart.toolkit.patching.hunks import LineReplacement


class SyntaxFlaw(NamedTuple):
    line: int
    message: str


class EditedCode(Protocol):
    """A language whose parser can be relied upon: what it does not read is no program."""

    def flaw(self, source: bytes | str) -> SyntaxFlaw | None:
        """The first syntax error; None for a program."""
        ...

    def steps(self, source: str) -> frozenset[int]:
        """By how many columns blocks are indented below the line that opens them; empty for what is no program."""
        ...

    def replaced(self, lines: Sequence[str], snippet: Sequence[str]) -> list[LineReplacement] | str:
        """The definitions of `snippet` put where the file has those of the same names; else why that cannot be done."""
        ...

    def defined(self, source: str) -> frozenset[str]:
        """The functions and classes at the top of a program; nothing for what is none."""
        ...

    def has_all_names(self, lines: Sequence[str], others: Sequence[str]) -> bool:
        """Whether both are programs and all that the first one names at its top is named at the other's."""
        ...


def edited_code(path: str) -> EditedCode | None:
    """What judges edits of this file by its code; None where they are judged by their lines alone."""
    language = language_of_file(path)
    return language.edited_code if language else None
