"""Where in a tree suites of tests lie: one for the whole of it, or one for each project of a monorepo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.toolkit.suites.detect import PYTEST_FILES, Read, configures_pytest, detect_runner, is_test_path

PROJECT_FILES = frozenset(("pyproject.toml", "setup.py", "setup.cfg", *PYTEST_FILES))
"""A folder with one of these is a project of its own."""


class Place(NamedTuple):
    folder: str
    """Relative to the tree's root; empty for that."""
    runner: str


def runner_in(folder: str, paths: Iterable[str], read: Read) -> str | None:
    """The runner of the tests in a folder; configuration in the folders above it counts, as it does for pytest."""
    inside = f"{folder}/" if folder else ""
    above = {str(one) for one in PurePosixPath(folder).parents} if folder else set[str]()
    kept = {path.removeprefix(inside): path for path in paths if path.startswith(inside)}
    if folder:
        kept |= {f"../{path}": path for path in paths if str(PurePosixPath(path).parent) in above}
    return detect_runner(kept, lambda shown: read(kept[shown]) if shown in kept else None)


def suites_in(paths: Sequence[str], read: Read) -> tuple[Place, ...]:
    """The suites of a tree, by folder. There is one, the root's, where the root has tests or configures pytest.

    Otherwise each folder that is a project and holds tests is one. A project inside another's tests is their data.
    """
    runner = detect_runner(paths, read)
    if runner is None:
        return ()
    projects = {str(PurePosixPath(path).parent) for path in paths if PurePosixPath(path).name in PROJECT_FILES}
    owners = {owner for path in paths if is_test_path(path) and (owner := _owner(path, projects)) is not None}
    configured = any("/" not in path and configures_pytest(path, read) for path in paths)
    if configured or "." in owners or not owners:
        return (Place("", runner),)
    found = ((folder, runner_in(folder, paths, read)) for folder in sorted(owners))
    return tuple(Place(folder, runner) for folder, runner in found if runner) or (Place("", runner),)


def _owner(path: str, projects: set[str]) -> str | None:
    """The outermost project, below the root, that a test lies in; the root where it lies in none."""
    if any(part.startswith(".") or part in ("node_modules", "site-packages") for part in path.split("/")):
        return None
    folders = [str(one) for one in PurePosixPath(path).parents][-2::-1]
    return next((folder for folder in folders if folder in projects), ".")
