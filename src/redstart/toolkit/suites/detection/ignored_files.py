"""Find what a workspace needs besides its snapshot: modules, generated code and data that git ignores, and submodules.

They never belong to a patch, but without them a project that works on its developer's disk does not work here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple, TypeVar

from redstart.core.secret_names import is_secret
from redstart.toolkit.base.git import ask_git

MOST_FILES = 2000
MOST_BYTES = 500 << 20

MODULES = "node_modules"
NOT_NEEDED = (
    *("__pycache__", ".git", ".pytest_cache", ".mypy_cache", ".ruff_cache", MODULES),
    *(".tox", ".nox", ".hypothesis", "*.pyc", "*.pyo"),
)
"""Files that are recreated if missing, and misleading if stale."""
ALSO_SECRET = ("credentials*", "secrets.*", ".env.py", ".env.[jt]s")
"""Names of secret files, including code: whoever makes git ignore such a file has a reason."""

AnyPath = TypeVar("AnyPath", bound=PurePath)


class Ignored(NamedTuple):
    copies: tuple[str, ...] = ()
    """Paths relative to the directory. A subdirectory is one entry if all its contents may be copied."""
    left_out: tuple[str, ...] = ()
    """Entries that are too large or have too many files."""
    modules: tuple[str, ...] = ()
    """Directories of installed Node.js modules: too large to copy, so they are shown in place."""


class _Entry(NamedTuple):
    path: str
    parts: tuple[str, ...]
    """The paths to copy: the entry itself, or those of its contents that may be copied."""
    files: int
    size: int


def find_ignored(root: Path) -> Ignored:
    """Find the ignored files and submodules that a workspace needs. Empty if the directory is not a git repo.

    If a limit is exceeded, the largest entries of git's list are left out, each as a whole.
    """
    output = ask_git(root, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    paths = sorted({*_decode_names((output or b"").split(b"\0")), *_list_submodules(root)})
    # Git may list a directory and also the files in it.
    outer_paths = map(str, drop_nested_paths(map(PurePosixPath, paths)))
    measured = (_measure(root, path) for path in outer_paths if not _is_unwanted_path(root, path))
    entries = [entry for entry in measured if entry.files]
    left_out: list[str] = []
    while (files := sum(item.files for item in entries)) > MOST_FILES or sum(
        item.size for item in entries
    ) > MOST_BYTES:
        by_files = files > MOST_FILES
        largest = max(entries, key=lambda item: (item.files, item.size) if by_files else (item.size, item.files))
        entries.remove(largest)
        left_out.append(largest.path)
    modules = tuple(path for path in paths if path.split("/")[-1] == MODULES and _is_folder(root / path))
    return Ignored(tuple(part for entry in entries for part in entry.parts), tuple(sorted(left_out)), modules)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _list_submodules(root: Path) -> Iterable[str]:
    """List submodules. Their files belong to another repo: the tests see them, but edits here do not reach them."""
    staged = (ask_git(root, "ls-files", "--stage", "-z") or b"").split(b"\0")
    return _decode_names(line.partition(b"\t")[2] for line in staged if line.startswith(b"160000 "))


def _decode_names(names: Iterable[bytes]) -> Iterable[str]:
    """Decode names. Undecodable ones are skipped, because an environment is stored as text."""
    for name in names:
        with contextlib.suppress(UnicodeDecodeError):
            if text := name.decode().rstrip("/"):
                yield text


def drop_nested_paths(paths: Iterable[AnyPath]) -> Iterator[AnyPath]:
    """Drop the paths that lie in another path. The order stays."""
    all_paths = tuple(paths)
    path_set = set[PurePath](all_paths)
    return (path for path in all_paths if path_set.isdisjoint(path.parents))


def _is_unwanted_path(root: Path, path: str) -> bool:
    parts = path.split("/")
    return any(_is_unwanted_name(part) for part in parts) or _is_environment(root / path)


def _is_unwanted_name(name: str) -> bool:
    return is_secret(name) or any(fnmatchcase(name.lower(), pattern) for pattern in (*NOT_NEEDED, *ALSO_SECRET))


def _is_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


class _Count:
    """Counts files and bytes, so that the walk of a huge directory can stop early."""

    def __init__(self) -> None:
        self.files = self.size = 0

    @property
    def too_much(self) -> bool:
        return self.files > MOST_FILES or self.size > MOST_BYTES

    def add(self, path: Path) -> None:
        self.files += 1
        self.size += path.lstat().st_size


def _measure(root: Path, path: str) -> _Entry:
    count = _Count()
    parts, _ = _find_allowed(root, path, count)
    return _Entry(path, tuple(parts), count.files, count.size)


def _find_allowed(root: Path, path: str, count: _Count) -> tuple[list[str], bool]:
    """Return `path` if all of it may be copied, else the contents that may, and whether that is everything."""
    full_path = root / path
    if full_path.is_symlink() or full_path.is_file():
        count.add(full_path)
        return [path], True
    names = _list_names(full_path)
    if names is None or count.too_much:
        return [], False
    allowed: list[str] = []
    is_complete = True
    for name in names:
        if _is_unwanted_name(name) or _is_environment(full_path / name) or not name.isprintable():
            is_complete = False
            continue
        parts, is_whole = _find_allowed(root, f"{path}/{name}", count)
        allowed += parts
        is_complete = is_complete and is_whole
    return ([path], True) if is_complete and allowed else (allowed, is_complete)


def _list_names(folder: Path) -> list[str] | None:
    """List the contents of a directory. None if it is not a directory or cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 (names alone are needed, of folders that may be large)
    except OSError:
        return None
