"""A file as the rules see it: its text, its lines, and what the parser of its language finds in it."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk, Severity
from redstart.toolkit.languages.registry import find_file_language, is_test_path

MAX_FILE_BYTES = 1 << 20
"""The largest file, in bytes, that our rules check; a larger file was not written by hand."""

_LINE_END = re.compile(r"\r\n|\r|\n")


class NamedString(NamedTuple):
    """A string in the code, the name that holds it, and its line."""

    name: str
    value: str
    line: int
    is_compared: bool = False
    """Whether the name is only compared with it."""


@dataclass(frozen=True)
class Source:
    path: str
    data: bytes

    @cached_property
    def text(self) -> str:
        """The text in the encoding that the file declares in its first lines; undecodable bytes are replaced."""
        try:
            encoding, _ = tokenize.detect_encoding(BytesIO(self.data).readline)
            return self.data.decode(encoding, errors="replace")
        except (SyntaxError, LookupError):
            return self.data.decode(errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_END.split(self.text)

    def list_named_strings(self) -> Iterable[NamedString]:
        """Return the strings that the code assigns to a name, as far as its language reads them."""
        return ()

    @property
    def is_test(self) -> bool:
        """Whether the path is that of a test, or of a test's data."""
        return is_test_path(self.path)

    def get_line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def build_finding(
        self, tool: str, rule: str, line: int, message: str, kind: FindingKind, risk: Risk, *, reaches: int = 0
    ) -> Finding:
        """Make a finding on a line of this file. It blocks a patch unless its risk is low."""
        return Finding(
            tool=tool,
            rule=rule,
            path=self.path,
            line=line,
            severity=Severity.warning if risk is Risk.low else Severity.error,
            message=message,
            fingerprint=Finding.mark(tool, rule, self.path, self.get_line(line)),
            kind=kind,
            risk=risk,
            reaches=reaches if reaches != line else 0,
        )


def create_source(path: str, data: bytes) -> Source:
    """Return the file, with what the parser of its language finds in it."""
    language = find_file_language(path)
    return language.create_source(path, data) if language else Source(path, data)
