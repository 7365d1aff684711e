"""Where in a tree suites of tests lie: one for the whole of it, or one for each project of a monorepo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.toolkit.suites.detect import PYTEST_FILES, Read, configures_pytest, detect_runner, is_python_test
from redstart.toolkit.suites.django import MANAGE, is_django_manage
from redstart.toolkit.suites.node_detect import NodeSuite, suite_in, suites_of

PROJECT_FILES = frozenset(("pyproject.toml", "setup.py", "setup.cfg", *PYTEST_FILES))
"""A folder with one of these is a project of its own."""


class Place(NamedTuple):
    folder: str
    """Relative to the tree's root; empty for that."""
    runner: str
    command: tuple[str, ...] = ()
    """How the project itself starts the runner, where that matters."""


def place_in(folder: str, paths: Sequence[str], read: Read) -> Place | None:
    """The suite of a folder: its tests in Python, else those of Node.js; None where it has none."""
    if runner := runner_in(folder, paths, read):
        return Place(folder, runner)
    return _of_node(suite_in(folder, paths, read))


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
    Packages of Node.js count where the root has no tests in Python.
    """
    of_node = tuple(Place(*one) for one in suites_of(paths, read))
    python = _python_suites(paths, read)
    if any(not place.folder for place in python):
        return python
    taken = {place.folder for place in python}
    return (*python, *(place for place in of_node if place.folder not in taken)) if python else of_node


def _of_node(found: NodeSuite | None) -> Place | None:
    return Place(*found) if found else None


def _python_suites(paths: Sequence[str], read: Read) -> tuple[Place, ...]:
    runner = detect_runner(paths, read)
    if runner is None:
        return ()
    projects = {str(PurePosixPath(path).parent) for path in paths if _begins_project(path, read)}
    owners = {owner for path in paths if is_python_test(path) and (owner := _owner(path, projects)) is not None}
    configured = any("/" not in path and configures_pytest(path, read) for path in paths)
    if configured or "." in owners or not owners:
        return (Place("", runner),)
    found = ((folder, runner_in(folder, paths, read)) for folder in sorted(owners))
    return tuple(Place(folder, runner) for folder, runner in found if runner) or (Place("", runner),)


def _begins_project(path: str, read: Read) -> bool:
    name = PurePosixPath(path).name
    return name in PROJECT_FILES or (name == MANAGE and is_django_manage(read(path) or b""))


def _owner(path: str, projects: set[str]) -> str | None:
    """The outermost project, below the root, that a test lies in; the root where it lies in none."""
    if any(part.startswith(".") or part in ("node_modules", "site-packages") for part in path.split("/")):
        return None
    folders = [str(one) for one in PurePosixPath(path).parents][-2::-1]
    return next((folder for folder in folders if folder in projects), ".")
