"""The use case of `redstart create`: start a run for a new program, and write the program into its folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from redstart.app.project_files import build_project_files, find_new_programs, make_package_name
from redstart.app.runs import (
    RunRequest,
    choose_question_options,
    get_result_snapshot,
    keep_environment,
    keep_run,
    resolve_max_tool_calls,
)
from redstart.app.wire import AppContext
from redstart.app.workspace import add_services, create_own_environment
from redstart.core.errors import ConfigError
from redstart.core.frozen import clip
from redstart.core.packages import Packages
from redstart.core.run import GOAL_LIMIT, RunSpec, RunState, Suite
from redstart.core.run_preferences import ProgramKind
from redstart.core.shell import Environment
from redstart.core.tasks import CreateTask
from redstart.toolkit.base.git import require_git
from redstart.toolkit.languages.new_program import NewPrograms, NewProject
from redstart.toolkit.languages.registry import find_runner_language
from redstart.toolkit.repo.trees import commit_first
from redstart.toolkit.suites.detection.environment import move_environment

MOST_TESTS = 50
LARGEST_TESTS = 1 << 20
_NAMES = "name the files test_*.py, or *.test.js for Node.js"


class NewProgram(NamedTuple):
    """The user's options for a new program, besides its goal."""

    language: str = "python"
    """The language, by `Language.key`."""
    kind: ProgramKind | None = None
    tests: Path | None = None
    """A file or folder with the user's own tests: if given, no others are written."""


async def create_program_run(
    app: AppContext, goal: str, out: Path, request: RunRequest, program_options: NewProgram | None = None
) -> RunState:
    """Store a new run that writes a program.

    Raises `ConfigError` if `out` already contains anything, if the goal is empty or too long, if the user's tests
    cannot be read, or if a program needs Node.js and there is none.
    """
    program_options, out = program_options or NewProgram(), out.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        problem = "is not empty" if out.is_dir() else "is not a directory"
        raise ConfigError(f"{out} {problem}", remedy="choose another directory: redstart create GOAL -o DIR")
    if not goal.strip():
        raise ConfigError("the goal is empty", remedy='describe the program: redstart create "a CSV sorter"')
    if len(goal) > GOAL_LIMIT:
        raise ConfigError(
            f"the goal has {len(goal):,} characters; the limit is {GOAL_LIMIT:,}", remedy="shorten the goal"
        )
    require_git()
    programs = find_new_programs(program_options.language)
    tests = _read_own_tests(program_options.tests, programs) if program_options.tests else {}
    environment = _create_environment(out, programs.runner)
    offered_packages = tuple(offer for offer in programs.test_packages if can_import(environment.python, offer))
    project = NewProject(
        make_package_name(out.name), goal, program_options.kind, program_options.language, offered_packages
    )
    base = app.trees.write(app.trees.create_empty(), {**build_project_files(project), **tests})
    suite_environment = add_services(app, environment)
    spec = RunSpec(
        task=CreateTask(
            kind=program_options.kind,
            offers=offered_packages,
            own_tests=tuple(sorted(filter(programs.is_test, tests))),
            test_cpu=app.settings.sandbox.test_cpu,
        ),
        goal=goal,
        base=base,
        suite=Suite(runner=programs.runner, environment=keep_environment(app, suite_environment), detailed=True),
        limits=request.limits,
        sandbox=app.settings.sandbox.limits,
        verify=request.verify,
        reflect=app.settings.reflect,
        looks=resolve_max_tool_calls(app, request),
        asks=choose_question_options(app, request),
        checks=app.settings.checks.checks,
        packages=Packages(allow=app.settings.dependencies.by_language, approve=request.approve),
        repo=project.package,
        tenant=app.settings.tenant,
        explore=app.settings.memory.explore,
    )
    return await keep_run(app, spec, folder=out)


def write_project(app: AppContext, state: RunState, out: Path) -> bool:
    """Write a created program into its folder, as a git repo with a first commit. A second call changes nothing.

    Return False if there is no program. Raises `ConfigError` if the folder contains something else, and `GitFailed` if
    the commit cannot be made.
    """
    result = get_result_snapshot(state)
    if result is None:
        return False
    locks = state.installed.locks if state.installed else {}
    snapshot = app.trees.write(result, {name: app.adapters.blobs.get(blob) for name, blob in locks.items()})
    if not (out.exists() and any(out.iterdir())):
        out.parent.mkdir(parents=True, exist_ok=True)
        with app.trees.checkout(snapshot) as folder:
            shutil.copytree(folder, out, dirs_exist_ok=True, symlinks=True)
    elif app.trees.take(out).tree != snapshot.tree:
        raise ConfigError(
            f"{out} changed during the run and is not empty",
            remedy=f"empty it, then run: redstart resume {state.run_id}",
        )
    summary = clip(" ".join(state.spec.goal.split()), 400)
    commit_first(out, f"Create {state.spec.repo}\n\n{summary}\n\nBy redstart, run {state.run_id}.\n")
    return True


@cache
def can_import(python: str, package: str) -> bool:
    """Whether this interpreter has the package. None of its code runs."""
    script = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return subprocess.run((python, "-I", "-c", script, package), capture_output=True, check=False).returncode == 0


def _create_environment(out: Path, runner: str) -> Environment:
    """Make an environment for the project's folder: Redstart's own interpreter, and the user's tools for the runner."""
    base_environment = create_own_environment(next(folder for folder in out.parents if folder.is_dir()))
    language = find_runner_language(runner)
    # The project has no packages yet, and packages of a folder above it do not belong to it.
    with tempfile.TemporaryDirectory() as empty:
        language_environment = language and language.build_environment(
            base_environment.model_copy(update={"mount": empty}), "", os.environ
        )
    if not language_environment:
        return move_environment(base_environment, out)
    path = language_environment.variables["PATH"].replace(empty, str(out))
    return move_environment(
        language_environment.model_copy(update={"variables": {**language_environment.variables, "PATH": path}}), out
    )


def _read_own_tests(tests_path: Path, programs: NewPrograms) -> dict[str, bytes | None]:
    """Read the user's tests as files of the new project."""
    if not tests_path.exists():
        raise ConfigError(
            f"{tests_path} does not exist", remedy="give --spec-tests a test file or a directory of tests"
        )
    root = tests_path if tests_path.is_dir() else tests_path.parent
    files = sorted(path for path in tests_path.rglob("*") if path.is_file()) if tests_path.is_dir() else [tests_path]
    test_files = [
        file for file in files if not {"__pycache__", "node_modules", ".git"} & set(file.relative_to(root).parts)
    ]
    if sum(item.stat().st_size for item in test_files) > LARGEST_TESTS or len(test_files) > MOST_TESTS:
        raise ConfigError(
            f"{tests_path} is too large for --spec-tests", remedy=f"give at most {MOST_TESTS} files, 1 MB in total"
        )
    folder = programs.test_folder
    tests: dict[str, bytes | None] = {
        f"{folder}/{item.relative_to(root).as_posix()}": item.read_bytes() for item in test_files
    }
    if not any(map(programs.is_test, tests)):
        raise ConfigError(f"{tests_path} contains no test file", remedy=_NAMES)
    return tests
