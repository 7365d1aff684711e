"""Build the shape of a solution from its tree: its files, each with a short description of its role."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.core.frozen import clip, format_count
from redstart.core.pattern import FILES, SolutionFile
from redstart.toolkit.languages.registry import is_code

NAMES = 6
"""How many names of a file are listed."""
PATH, ROLE = 120, 160
_PROJECT = frozenset(
    ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "tsconfig.json", "requirements.txt", "go.mod")
)
_PROSE = (".md", ".rst", ".txt")


class Shape(NamedTuple):
    parts: tuple[SolutionFile, ...]
    left_out: int
    """The number of files that did not fit."""


class TreeFiles(NamedTuple):
    """Access to facts about the files of a tree."""

    is_test: Callable[[str], bool]
    names: Callable[[str], list[str]]
    """Lists the top-level names of a code file, in order."""


def build_shape(paths: Iterable[str], files: TreeFiles, removed_paths: Iterable[str] = ()) -> Shape:
    """Build the shape: code first, then tests, then other files, and last the files that the solution removed."""
    removed = set(removed_paths)
    ranked = sorted(set(paths) - removed, key=lambda path: (_rank(path, files), path))
    parts = [SolutionFile(path=clip(path, PATH), role=clip(_describe_role(path, files), ROLE)) for path in ranked]
    parts += [SolutionFile(path=clip(path, PATH), role="taken away") for path in sorted(removed)]
    return Shape(tuple(parts[:FILES]), max(len(parts) - FILES, 0))


def _rank(path: str, files: TreeFiles) -> int:
    if files.is_test(path):
        return 1
    return 0 if is_code(path) else 2


def _describe_role(path: str, files: TreeFiles) -> str:
    name = PurePosixPath(path).name
    if files.is_test(path):
        return _describe_tests(name, files.names(path))
    if name in _PROJECT:
        return "project file"
    if is_code(path):
        return _describe_code(name, files.names(path))
    return "documentation" if name.endswith(_PROSE) else "other file"


def _describe_tests(name: str, names: list[str]) -> str:
    if name == "conftest.py":
        return "fixtures of the tests"
    count = sum(item.startswith("test") for item in names)
    return f"tests: {format_count(count, 'function')}" if count else "tests"


def _describe_code(name: str, names: list[str]) -> str:
    kind = {"__init__.py": "package", "__main__.py": "entry point of the package"}.get(name, "module")
    public = [item for item in names if not item.startswith("_")]
    suffix = " …" if len(public) > NAMES else ""
    return f"{kind}: {', '.join(public[:NAMES])}{suffix}" if public else kind
