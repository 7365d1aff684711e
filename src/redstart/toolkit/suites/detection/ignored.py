"""What a workspace needs beside its snapshot: built modules, generated code and data that git ignores, and submodules.

They are no part of a patch, but without them a project that works on its developer's disk does not work here.
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
"""Made again where it is missing, and misleading where it is stale."""
ALSO_SECRET = ("credentials*", "secrets.*", ".env.py", ".env.[jt]s")
"""Code too: whoever has git ignore a file of such a name knows why."""

AnyPath = TypeVar("AnyPath", bound=PurePath)


class Ignored(NamedTuple):
    copies: tuple[str, ...] = ()
    """Relative to the folder. A folder is named as a whole where all that is in it may be copied."""
    left_out: tuple[str, ...] = ()
    """Too large, or too many."""
    modules: tuple[str, ...] = ()
    """Folders of installed Node.js modules: too large to be copied, and shown where they lie."""


class _Entry(NamedTuple):
    path: str
    parts: tuple[str, ...]
    """What of it is copied: itself, or what may be copied of what is in it."""
    files: int
    size: int


def find_ignored(root: Path) -> Ignored:
    """What git ignores in the folder, or keeps as a submodule, and a workspace needs; nothing where it is no git repo.

    Beyond the two limits the largest entries of git's list are left out, each as a whole.
    """
    said = ask_git(root, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    listed = sorted({*_texts((said or b"").split(b"\0")), *_submodules(root)})
    # Git names a folder and also the files in it where it is not ignored itself.
    outer = map(str, outermost(map(PurePosixPath, listed)))
    measured = (_measure(root, path) for path in outer if not _unwanted_path(root, path))
    entries = [entry for entry in measured if entry.files]
    left_out: list[str] = []
    while (files := sum(item.files for item in entries)) > MOST_FILES or sum(
        item.size for item in entries
    ) > MOST_BYTES:
        by_files = files > MOST_FILES
        largest = max(entries, key=lambda item: (item.files, item.size) if by_files else (item.size, item.files))
        entries.remove(largest)
        left_out.append(largest.path)
    modules = tuple(path for path in listed if path.split("/")[-1] == MODULES and _is_folder(root / path))
    return Ignored(tuple(part for entry in entries for part in entry.parts), tuple(sorted(left_out)), modules)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _submodules(root: Path) -> Iterable[str]:
    """Their files belong to another repo: they are there for the tests, and no edit of this one reaches them."""
    staged = (ask_git(root, "ls-files", "--stage", "-z") or b"").split(b"\0")
    return _texts(line.partition(b"\t")[2] for line in staged if line.startswith(b"160000 "))


def _texts(names: Iterable[bytes]) -> Iterable[str]:
    """Names that are no text are passed over: an environment is kept as text."""
    for name in names:
        with contextlib.suppress(UnicodeDecodeError):
            if text := name.decode().rstrip("/"):
                yield text


def outermost(paths: Iterable[AnyPath]) -> Iterator[AnyPath]:
    """Without those that lie in another, in their order."""
    listed = tuple(paths)
    whole = set[PurePath](listed)
    return (path for path in listed if whole.isdisjoint(path.parents))


def _unwanted_path(root: Path, path: str) -> bool:
    parts = path.split("/")
    return any(_unwanted_name(part) for part in parts) or _is_environment(root / path)


def _unwanted_name(name: str) -> bool:
    return is_secret(name) or any(fnmatchcase(name.lower(), pattern) for pattern in (*NOT_NEEDED, *ALSO_SECRET))


def _is_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


class _Count:
    """Counts until it is too much: a folder of a million files is not walked to its end."""

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
    parts, _ = _allowed(root, path, count)
    return _Entry(path, tuple(parts), count.files, count.size)


def _allowed(root: Path, path: str, count: _Count) -> tuple[list[str], bool]:
    """`path` if all of it may be copied, else what may be copied of what is in it; and whether it was all."""
    here = root / path
    if here.is_symlink() or here.is_file():
        count.add(here)
        return [path], True
    names = _names(here)
    if names is None or count.too_much:
        return [], False
    inner: list[str] = []
    whole = True
    for name in names:
        if _unwanted_name(name) or _is_environment(here / name) or not name.isprintable():
            whole = False
            continue
        parts, all_of_it = _allowed(root, f"{path}/{name}", count)
        inner += parts
        whole = whole and all_of_it
    return ([path], True) if whole and inner else (inner, whole)


def _names(folder: Path) -> list[str] | None:
    """What is in a folder; None where it is none, or cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 (names alone are needed, of folders that may be large)
    except OSError:
        return None
