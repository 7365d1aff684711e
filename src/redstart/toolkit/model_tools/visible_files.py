"""Decide which files of a snapshot may be shown, and which parts of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from posixpath import basename
from typing import NamedTuple

from redstart.core.secret_names import FOLDERS, is_harmless, is_secret
from redstart.toolkit.base.code_files import Read

Size = Callable[[str], int | None]
"""Returns a file's size without reading it; None if that is not possible."""

MAX_FILE_BYTES = 1 << 20
"""A larger file is not shown."""
LONGEST_PATH = 1000

_SECRET_STEMS = (
    "secret",
    "secrets",
    "credential",
    "credentials",
    "token",
    "tokens",
    "password",
    "passwords",
    "apikeys",
)
"""Names of files that may hold secrets, unless they are code."""


class ReadRefusal(NamedTuple):
    """Why something is not shown, in a few words for a model."""

    reason: str


class FileText(NamedTuple):
    path: str
    lines: tuple[str, ...]


class Files:
    """The files of one snapshot. `size`, if given, avoids reading files that are too large."""

    def __init__(self, paths: Iterable[str], read: Read, size: Size | None = None) -> None:
        self.paths = tuple(sorted(set(paths)))
        self._known_paths = frozenset(self.paths)
        self._read, self._size = read, size
        self._texts: dict[str, FileText | ReadRefusal] = {}

    def read_text(self, requested_path: str) -> FileText | ReadRefusal:
        """Return the lines of a text file, or why they are not shown. Never reads outside the snapshot."""
        path = normalize_path(requested_path)
        if isinstance(path, ReadRefusal):
            return path
        if path not in self._texts:
            self._texts[path] = self._open(path)
        return self._texts[path]

    def _open(self, path: str) -> FileText | ReadRefusal:
        if path not in self._known_paths:
            return ReadRefusal(self._describe_missing(path))
        if self._size is not None and (self._size(path) or 0) > MAX_FILE_BYTES:
            return ReadRefusal(f"{path} is too large")
        data = self._read(path)
        if data is None:
            return ReadRefusal(f"{path} is no regular file: links are not followed")
        if len(data) > MAX_FILE_BYTES:
            return ReadRefusal(f"{path} is too large")
        if b"\0" in data:
            return ReadRefusal(f"{path} is binary")
        text = data.decode(errors="replace")
        return FileText(path, tuple(text.removesuffix("\n").split("\n")) if text else ())

    def list_paths(self, folder: str) -> list[str]:
        """List what may be shown below a folder, or everywhere; for a file, that file; empty if there is neither."""
        if folder in self._known_paths:
            return [folder] if not isinstance(normalize_path(folder), ReadRefusal) else []
        prefix = "" if folder in ("", ".") else f"{folder.strip('/')}/"
        return [
            path for path in self.paths if path.startswith(prefix) and not isinstance(normalize_path(path), ReadRefusal)
        ]

    def _describe_missing(self, path: str) -> str:
        if any(item.startswith(f"{path}/") for item in self.paths):
            return f"{path} is a folder: ask for its outline"
        alike = [item for item in self.list_paths("") if basename(item) == basename(path)][:5]
        return f"there is no file {path}" + (f"; there is {', '.join(alike)}" if alike else "")


def normalize_path(requested_path: str) -> str | ReadRefusal:
    """Return a path inside the snapshot, or why it may not be shown."""
    path = requested_path.strip()
    while path.startswith("./"):
        path = path[2:]
    if not path or len(path) > LONGEST_PATH or any(unicodedata.category(character) == "Cc" for character in path):
        return ReadRefusal("that is no path")
    if path.startswith(("/", "~", "\\")) or "\\" in path or ":" in path.split("/")[0] or "://" in path:
        return ReadRefusal("only paths inside the project, from its root, can be looked at")
    parts = path.rstrip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return ReadRefusal("only paths inside the project, from its root, can be looked at")
    if any(_is_git(part) for part in parts):
        return ReadRefusal("git's own folder is not shown")
    if is_secret_path(parts):
        return ReadRefusal("that may hold secrets: it is not shown")
    return "/".join(parts)


def is_secret_path(parts: list[str]) -> bool:
    """Whether a path, by its names, may hold keys or passwords. Code and prose with such a name does not count."""
    *folders, name = parts
    if is_secret(name) or any(folder.casefold() in FOLDERS for folder in folders):
        return True
    return not is_harmless(name) and name.casefold().split(".")[0] in _SECRET_STEMS


def _is_git(part: str) -> bool:
    """Whether it is `.git` in any spelling that some file system accepts for it."""
    visible = "".join(character for character in part if unicodedata.category(character) != "Cf").casefold()
    return visible.rstrip(". ") == ".git" or visible.startswith("git~")
