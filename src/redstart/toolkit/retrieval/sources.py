"""The files of a snapshot, each read at most once."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.toolkit.base.code_files import Read, is_readable, is_searchable
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.retrieval.code_reader import CodeReader


class Sources:
    def __init__(self, files: Iterable[str], read: Read) -> None:
        self.files = frozenset(files)
        self._read = read
        self._bytes: dict[str, bytes] = {}
        self._lines: dict[str, list[str]] = {}
        self._readers: dict[Language | None, CodeReader] = {}

    def read_data(self, path: str) -> bytes:
        """Read the file; empty if it has no readable text."""
        if path not in self._bytes:
            data = self._read(path) if path in self.files and is_searchable(path) else None
            self._bytes[path] = data if data is not None and is_readable(data) else b""
        return self._bytes[path]

    def read_lines(self, path: str) -> list[str]:
        if path not in self._lines:
            text = self.read_data(path).decode(errors="replace")
            self._lines[path] = text.removesuffix("\n").split("\n") if text else []
        return self._lines[path]

    def get_reader(self, path: str) -> CodeReader:
        """Return the reader for this file's code; a reader that finds nothing if Redstart has none."""
        language = find_file_language(path)
        if language not in self._readers:
            reader = language.create_code_reader(self) if language else None
            self._readers[language] = reader or CodeReader()
        return self._readers[language]
