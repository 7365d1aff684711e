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
from redstart.toolkit.languages.registry import find_runner_language, list_languages
from redstart.toolkit.suites.detection.environment import (
    Interpreter,
    build_environment,
    find_environment,
    find_interpreter,
)
from redstart.toolkit.suites.detection.history import find_work_root
from redstart.toolkit.suites.detection.interpreters import ON_PATH
from redstart.toolkit.suites.detection.suite_locations import SuitePlace, list_suites, place_in

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
    bare_interpreter: Interpreter | None = None
    """The project's interpreter if the tests need pytest and it has none."""


def prepare_run_setup(
    app: AppContext,
    path: Path,
    *,
    command: tuple[str, ...] = (),
    python: str | None = None,
    own_python: bool = False,
    choose: Choose | None = None,
    snapshot: Snapshot | None = None,
) -> RunGround:
    """Take a snapshot of the folder's git repo, which is not changed, and find what its tests need.

    With `snapshot`, use these files of the repo instead of the current ones.
    With `own_python`, the tests run with Redstart's own interpreter, without looking for the project's.
    The callback chooses one of several suites; without it, a `ConfigError` lists them.
    If the tests need pytest and the project's environment has none, the caller resolves that afterwards.
    Raises `ConfigError` also if the folder does not exist or there is no interpreter.
    """
    if not path.is_dir():
        raise ConfigError(f"no such directory: {path}")
    require_git()
    path = path.resolve()
    root = find_work_root(path)
    base = snapshot or app.trees.take(root)
    relative_path = "" if path == root else path.relative_to(root).as_posix()
    place = _place(app, base, SuitePlace(relative_path, "", command) if relative_path or command else None, choose)
    command = place.command or command
    runner = _find_started_runner(command) or place.runner
    if own_python:
        equipment = Equipment(runner or "pytest", create_own_environment(root, place.folder))
    else:
        equipment = _find_equipment(root, place.folder, runner, command, python)
    limits = app.settings.sandbox.limits
    environment = add_services(app, equipment.environment)
    return RunGround(
        root, place.folder, base, equipment.runner, environment, limits, command, equipment.bare_interpreter
    )


class Equipment(NamedTuple):
    """The runner and the environment of a folder's tests."""

    runner: str
    environment: Environment
    bare_interpreter: Interpreter | None = None


def _find_equipment(root: Path, folder: str, runner: str, command: tuple[str, ...], python: str | None) -> Equipment:
    """Find what the runner's language needs: for Python, the project's interpreter and, if unknown, the runner."""
    if language := find_runner_language(runner):
        environment = language.build_environment(create_own_environment(root, folder), folder, os.environ)
        if environment is not None:
            return Equipment(runner, environment)
    interpreter, reason = find_interpreter(root, folder=folder, python=python, environ=os.environ)
    if not runner:
        runner = "pytest" if interpreter.has_pytest else "unittest"
    lent_runner = _find_lent_runner(runner)
    bare_interpreter = interpreter if lent_runner and lent_runner.is_missing(runner, command, interpreter) else None
    return Equipment(runner, build_environment(root, interpreter, reason), bare_interpreter)


def _find_lent_runner(runner: str) -> LentRunner | None:
    language = find_runner_language(runner)
    return language.lent_runner if language else None


def equip(app: AppContext, setup: RunGround, may_lend: MayLend | None) -> RunGround:
    """Use Redstart's own runner if the project's environment has none and `may_lend` agrees.

    No question is asked about an interpreter outside of a project environment (`python3` on the path). Raises
    `ConfigError` if `may_lend` does not agree, or if the interpreter is too old.
    """
    interpreter, environment, lent_runner = setup.bare_interpreter, setup.environment, _find_lent_runner(setup.runner)
    if interpreter is None or lent_runner is None:
        return setup
    is_projects_own = environment.chosen != ON_PATH
    if not lent_runner.is_compatible(interpreter) and not is_projects_own:
        return setup._replace(
            environment=add_services(app, create_own_environment(setup.root, setup.folder)), bare_interpreter=None
        )
    location = (
        environment.chosen if environment.chosen.startswith(".") else f"{environment.chosen}: {interpreter.prefix}"
    )
    problem = f"this project's environment ({location}) does not contain {lent_runner.name}"
    if not lent_runner.is_compatible(interpreter) or (is_projects_own and not (may_lend and may_lend(problem))):
        remedy = (
            f"{interpreter.executable} -m pip install {lent_runner.name}, or specify the command that runs the "
            f"tests: --test-cmd"
        )
        raise ConfigError(problem, remedy=remedy)
    return setup._replace(environment=lent_runner.lend(environment, app.settings.home), bare_interpreter=None)


def _place(app: AppContext, base: Snapshot, requested: SuitePlace | None, choose: Choose | None) -> SuitePlace:
    """Find the suite: in the named folder, or the only one of the repo, or the chosen one."""
    paths, read = app.trees.list_files(base), partial(app.trees.read, base)
    if requested is not None:
        if requested.command and (suite_place := _find_started_suite(requested, paths, read)):
            return suite_place
        detection = place_in(requested.folder, paths, read) or SuitePlace(requested.folder, "")
        # A user's command that starts no runner of the language belongs to the reader of its report.
        language = find_runner_language(detection.runner)
        starts_other = bool(requested.command) and language is not None and not language.loads_hooks
        return SuitePlace(
            requested.folder, "" if starts_other else detection.runner, requested.command or detection.command
        )
    detection = {place.folder: place for place in list_suites(paths, read)}
    if len(detection) < 2:
        return next(iter(detection.values()), SuitePlace("", ""))
    if choose is None:
        choices = "\n".join(f"  redstart fix {folder}" for folder in detection)
        raise ConfigError(f"this repo has {len(detection)} test suites", remedy=f"choose one of:\n{choices}")
    return detection[choose(tuple(detection))]


def _find_started_suite(requested: SuitePlace, paths: Sequence[str], read: Read) -> SuitePlace | None:
    suite_places = (
        language.find_started_suite(requested.folder, paths, read, requested.command) for language in list_languages()
    )
    return next((place for place in suite_places if place), None)


def _find_started_runner(command: tuple[str, ...]) -> str:
    """Find the runner that the user's command starts; empty if the command alone does not show it."""
    runners = (language.find_command_runner(command) for language in list_languages() if command)
    return next((runner for runner in runners if runner), "")


def add_services(app: AppContext, environment: Environment) -> Environment:
    """Add the services that the user (never the repo) lets the tests reach."""
    return environment.model_copy(update={"services": app.settings.sandbox.services})


def create_own_environment(root: Path, folder: str = "") -> Environment:
    """Make an environment of Redstart's own interpreter. The pytest plugins of its dependencies are not loaded."""
    environment = find_environment(root, folder=folder, python=sys.executable, environ=os.environ)
    variables = {**environment.variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return environment.model_copy(update={"variables": variables, "chosen": "redstart's own"})
