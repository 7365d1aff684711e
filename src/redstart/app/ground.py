"""Prepare a folder for a run: its snapshot, and the runner, environment and limits of its tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from redstart.app.wire import AppContext
from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.shell import Environment, SandboxLimits
from redstart.toolkit.base.git import require_git
from redstart.toolkit.languages.abilities import LentRunner
from redstart.toolkit.languages.protocol import Read
from redstart.toolkit.languages.registry import language_of_runner, languages
from redstart.toolkit.suites.detection.environment import (
    Interpreter,
    environment_of,
    find_environment,
    find_interpreter,
)
from redstart.toolkit.suites.detection.history import work_root
from redstart.toolkit.suites.detection.interpreters import ON_PATH
from redstart.toolkit.suites.detection.places import SuitePlace, place_in, suites_in

MayLend = Callable[[str], bool]
"""Takes a sentence that names the environment without pytest; returns whether Redstart's own pytest may run there."""
Choose = Callable[[Sequence[str]], str]
"""Takes the folders of several suites; returns the chosen one."""


class RunGround(NamedTuple):
    """The setup of a run on a folder. A sandbox shell for a person uses the same setup."""

    root: Path
    """The root of the git repo, which is snapshotted and mounted as a whole."""
    folder: str
    """The folder in the repo where the tests run; empty for its root."""
    base: Snapshot
    runner: str
    environment: Environment
    limits: SandboxLimits
    command: tuple[str, ...] = ()
    """The command that starts the tests: the user's or, for a Node.js project, that of its own script."""
    bare: Interpreter | None = None
    """The project's interpreter if the tests need pytest and it has none."""


def take_ground(
    house: AppContext,
    path: Path,
    *,
    command: tuple[str, ...] = (),
    python: str | None = None,
    own_python: bool = False,
    choose: Choose | None = None,
) -> RunGround:
    """Take a snapshot of the folder's git repo, which is not changed, and find what its tests need.

    With `own_python`, the tests run with Redstart's own interpreter, without looking for the project's.
    The callback chooses one of several suites; without it, a `ConfigError` lists them.
    If the tests need pytest and the project's environment has none, the caller resolves that afterwards.
    Raises `ConfigError` also if the folder does not exist or there is no interpreter.
    """
    if not path.is_dir():
        raise ConfigError(f"no such directory: {path}")
    require_git()
    path = path.resolve()
    root = work_root(path)
    base = house.trees.take(root)
    inner = "" if path == root else path.relative_to(root).as_posix()
    place = _place(house, base, SuitePlace(inner, "", command) if inner or command else None, choose)
    command = place.command or command
    runner = _started_by(command) or place.runner
    if own_python:
        found = Equipment(runner or "pytest", own_environment(root, place.folder))
    else:
        found = _equipment(root, place.folder, runner, command, python)
    limits = house.settings.sandbox.limits
    environment = served(house, found.environment)
    return RunGround(root, place.folder, base, found.runner, environment, limits, command, found.bare)


class Equipment(NamedTuple):
    """The runner and the environment of a folder's tests."""

    runner: str
    environment: Environment
    bare: Interpreter | None = None


def _equipment(root: Path, folder: str, runner: str, command: tuple[str, ...], python: str | None) -> Equipment:
    """Find what the runner's language needs: for Python, the project's interpreter and, if unknown, the runner."""
    if language := language_of_runner(runner):
        environment = language.environment(own_environment(root, folder), folder, os.environ)
        if environment is not None:
            return Equipment(runner, environment)
    interpreter, why = find_interpreter(root, folder=folder, python=python, environ=os.environ)
    if not runner:
        runner = "pytest" if interpreter.has_pytest else "unittest"
    lent = _lent(runner)
    bare = interpreter if lent and lent.is_missing(runner, command, interpreter) else None
    return Equipment(runner, environment_of(root, interpreter, why), bare)


def _lent(runner: str) -> LentRunner | None:
    language = language_of_runner(runner)
    return language.lent_runner if language else None


def equip(house: AppContext, ground: RunGround, may_lend: MayLend | None) -> RunGround:
    """Use Redstart's own runner if the project's environment has none and `may_lend` agrees.

    No question is asked about an interpreter outside of a project environment (`python3` on the path).
    Raises `ConfigError` if nobody agrees, or the interpreter is too old for it.
    """
    interpreter, environment, lent = ground.bare, ground.environment, _lent(ground.runner)
    if interpreter is None or lent is None:
        return ground
    is_projects_own = environment.chosen != ON_PATH
    if not lent.fits(interpreter) and not is_projects_own:
        return ground._replace(environment=served(house, own_environment(ground.root, ground.folder)), bare=None)
    where = environment.chosen if environment.chosen.startswith(".") else f"{environment.chosen}: {interpreter.prefix}"
    what = f"this project's environment ({where}) has no {lent.name}"
    if not lent.fits(interpreter) or (is_projects_own and not (may_lend and may_lend(what))):
        remedy = (
            f"{interpreter.executable} -m pip install {lent.name}, or name the command that runs the tests: --test-cmd"
        )
        raise ConfigError(what, remedy=remedy)
    return ground._replace(environment=lent.lend(environment, house.settings.home), bare=None)


def _place(house: AppContext, base: Snapshot, named: SuitePlace | None, choose: Choose | None) -> SuitePlace:
    """Find the suite: in the named folder, or the only one of the repo, or the chosen one."""
    paths, read = house.trees.files(base), partial(house.trees.read, base)
    if named is not None:
        if named.command and (told := _started_suite(named, paths, read)):
            return told
        found = place_in(named.folder, paths, read) or SuitePlace(named.folder, "")
        # A user's command that starts no runner of the language belongs to the reader of its report.
        language = language_of_runner(found.runner)
        starts_other = bool(named.command) and language is not None and not language.loads_hooks
        return SuitePlace(named.folder, "" if starts_other else found.runner, named.command or found.command)
    found = {place.folder: place for place in suites_in(paths, read)}
    if len(found) < 2:
        return next(iter(found.values()), SuitePlace("", ""))
    if choose is None:
        listed = "\n".join(f"  redstart fix {folder}" for folder in found)
        raise ConfigError(f"this repo has {len(found)} test suites", remedy=f"choose one of:\n{listed}")
    return found[choose(tuple(found))]


def _started_suite(named: SuitePlace, paths: Sequence[str], read: Read) -> SuitePlace | None:
    started = (language.started_by(named.folder, paths, read, named.command) for language in languages())
    return next((place for place in started if place), None)


def _started_by(command: tuple[str, ...]) -> str:
    """Find the runner that the user's command starts; empty if the command alone does not show it."""
    told = (language.runner_of_command(command) for language in languages() if command)
    return next((runner for runner in told if runner), "")


def served(house: AppContext, environment: Environment) -> Environment:
    """Add the services that the user (never the repo) lets the tests reach."""
    return environment.model_copy(update={"services": house.settings.sandbox.services})


def own_environment(root: Path, folder: str = "") -> Environment:
    """Make an environment of Redstart's own interpreter. The pytest plugins of its dependencies are not loaded."""
    environment = find_environment(root, folder=folder, python=sys.executable, environ=os.environ)
    alone = {**environment.variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return environment.model_copy(update={"variables": alone, "chosen": "redstart's own"})
