"""The files of a snapshot, each read and parsed at most once."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable

from redstart.toolkit.base.code_files import PYTHON, Read, is_readable, is_searchable


class Sources:
    def __init__(self, files: Iterable[str], read: Read) -> None:
        self.files = frozenset(files)
        self._read = read
        self._bytes: dict[str, bytes] = {}
        self._lines: dict[str, list[str]] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def data(self, path: str) -> bytes:
        """Empty where there is no text to be had."""
        if path not in self._bytes:
            data = self._read(path) if path in self.files and is_searchable(path) else None
            self._bytes[path] = data if data is not None and is_readable(data) else b""
        return self._bytes[path]

    def lines(self, path: str) -> list[str]:
        if path not in self._lines:
            text = self.data(path).decode(errors="replace")
            self._lines[path] = text.removesuffix("\n").split("\n") if text else []
        return self._lines[path]

    def tree(self, path: str) -> ast.Module | None:
        """None where it is not there, not Python, or not Python that parses."""
        if path not in self._trees:
            self._trees[path] = _parse(self.data(path)) if path in self.files and path.endswith(PYTHON) else None
        return self._trees[path]


def _parse(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the repo's own invalid escapes are none of ours
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
