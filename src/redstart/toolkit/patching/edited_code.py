"""The interface of a language for checking and placing edits of its code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.patching.hunks import LineReplacement


class SyntaxFlaw(NamedTuple):
    line: int
    message: str


class EditedCode(Protocol):
    """A language with a reliable parser: what does not parse is not a program."""

    def find_syntax_flaw(self, source: bytes | str) -> SyntaxFlaw | None:
        """Find the first syntax error; None if there is none."""
        ...

    def list_indent_widths(self, source: str) -> frozenset[int]:
        """Return the indentation widths of blocks in columns; empty if the source does not parse."""
        ...

    def replace_definitions(self, lines: Sequence[str], snippet: Sequence[str]) -> list[LineReplacement] | str:
        """Replace the file's definitions by those of the same names in `snippet`; else return why it is impossible."""
        ...

    def list_defined_names(self, source: str) -> frozenset[str]:
        """Return the top-level functions and classes; empty if the source does not parse."""
        ...

    def restore_documentation(self, lines: Sequence[str], new_lines: Sequence[str]) -> list[str]:
        """Return the new lines with the comments and docstrings of unchanged code that they lost."""
        ...

    def restore_imports(self, lines: Sequence[str], new_lines: Sequence[str]) -> list[str]:
        """Return the new lines with the imports that they lost but still need."""
        ...

    def has_all_names(self, lines: Sequence[str], other_lines: Sequence[str]) -> bool:
        """Return whether both parse and the second one defines all top-level names of the first."""
        ...


def get_edited_code(path: str) -> EditedCode | None:
    """Return the code checks for edits of this file; None if only its lines are checked."""
    language = find_file_language(path)
    return language.edited_code if language else None
