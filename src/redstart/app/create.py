"""The use case of `redstart create`: start a run for a new program, and write the program into its folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from redstart.app.ground import own_environment, served
from redstart.app.runs import RunRequest, keep_environment, keep_run, looks_of, result_snapshot
from redstart.app.skeleton import files_of, new_programs, package_name
from redstart.app.wire import AppContext, asking
from redstart.core.errors import ConfigError
from redstart.core.noun import clip
from redstart.core.packages import Packages
from redstart.core.run import GOAL_LIMIT, RunSpec, RunState, Suite
from redstart.core.shell import Environment
from redstart.core.tasks import CreateTask
from redstart.core.wishes import ProgramKind
from redstart.toolkit.base.git import require_git
from redstart.toolkit.languages.new_program import NewPrograms, NewProject
from redstart.toolkit.languages.registry import language_of_runner
from redstart.toolkit.repo.trees import commit_first
from redstart.toolkit.suites.detection.environment import moved

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


async def begin_create(
    house: AppContext, goal: str, out: Path, asked: RunRequest, wanted: NewProgram | None = None
) -> RunState:
    """Store a new run that writes a program.

    Raises `ConfigError` if `out` already contains anything, if the goal is empty or too long, if the user's tests
    cannot be read, or if a program needs Node.js and there is none.
    """
    wanted, out = wanted or NewProgram(), out.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        what = "is not empty" if out.is_dir() else "is not a directory"
        raise ConfigError(f"{out} {what}", remedy="choose another directory: redstart create GOAL -o DIR")
    if not goal.strip():
        raise ConfigError("the goal is empty", remedy='describe the program: redstart create "a CSV sorter"')
    if len(goal) > GOAL_LIMIT:
        raise ConfigError(
            f"the goal has {len(goal):,} characters; the limit is {GOAL_LIMIT:,}", remedy="shorten the goal"
        )
    require_git()
    programs = new_programs(wanted.language)
    tests = _own_tests(wanted.tests, programs) if wanted.tests else {}
    environment = _environment(out, programs.runner)
    offers = tuple(offer for offer in programs.offers if can_import(environment.python, offer))
    project = NewProject(package_name(out.name), goal, wanted.kind, wanted.language, offers)
    base = house.trees.write(house.trees.empty(), {**files_of(project), **tests})
    mounted = served(house, environment)
    spec = RunSpec(
        task=CreateTask(
            kind=wanted.kind,
            offers=offers,
            own_tests=tuple(sorted(filter(programs.is_test, tests))),
            test_cpu=house.settings.sandbox.test_cpu,
        ),
        goal=goal,
        base=base,
        suite=Suite(runner=programs.runner, environment=keep_environment(house, mounted)),
        limits=asked.limits,
        sandbox=house.settings.sandbox.limits,
        verify=asked.verify,
        reflect=house.settings.reflect,
        looks=looks_of(house, asked),
        asks=asking(house.settings),
        checks=house.settings.checks.checks,
        packages=Packages(allow=house.settings.dependencies.by_language, approve=asked.approve),
        repo=project.package,
        tenant=house.settings.tenant,
        explore=house.settings.memory.explore,
    )
    return await keep_run(house, spec, folder=out)


def write_project(house: AppContext, state: RunState, out: Path) -> bool:
    """Write a created program into its folder, as a git repo with a first commit. A second call changes nothing.

    Return False if there is no program. Raises `ConfigError` if the folder contains something else, and `GitFailed` if
    the commit cannot be made.
    """
    made = result_snapshot(state)
    if made is None:
        return False
    locks = state.installed.locks if state.installed else {}
    snapshot = house.trees.write(made, {name: house.adapters.blobs.get(blob) for name, blob in locks.items()})
    if not (out.exists() and any(out.iterdir())):
        out.parent.mkdir(parents=True, exist_ok=True)
        with house.trees.checkout(snapshot) as folder:
            shutil.copytree(folder, out, dirs_exist_ok=True, symlinks=True)
    elif house.trees.take(out).tree != snapshot.tree:
        raise ConfigError(
            f"{out} changed during the run and is not empty",
            remedy=f"empty it, then run: redstart resume {state.run_id}",
        )
    about = clip(" ".join(state.spec.goal.split()), 400)
    commit_first(out, f"Create {state.spec.repo}\n\n{about}\n\nBy redstart, run {state.run_id}.\n")
    return True


@cache
def can_import(python: str, package: str) -> bool:
    """Whether this interpreter has the package. None of its code runs."""
    asked = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return subprocess.run((python, "-I", "-c", asked, package), capture_output=True, check=False).returncode == 0


def _environment(out: Path, runner: str) -> Environment:
    """Make an environment for the project's folder: Redstart's own interpreter, and the user's tools for the runner."""
    own = own_environment(next(folder for folder in out.parents if folder.is_dir()))
    language = language_of_runner(runner)
    # The project has no packages yet, and packages of a folder above it do not belong to it.
    with tempfile.TemporaryDirectory() as empty:
        found = language and language.environment(own.model_copy(update={"mount": empty}), "", os.environ)
    if not found:
        return moved(own, out)
    path = found.variables["PATH"].replace(empty, str(out))
    return moved(found.model_copy(update={"variables": {**found.variables, "PATH": path}}), out)


def _own_tests(given: Path, programs: NewPrograms) -> dict[str, bytes | None]:
    """Read the user's tests as files of the new project."""
    if not given.exists():
        raise ConfigError(f"{given} does not exist", remedy="give --spec-tests a test file or a directory of tests")
    root = given if given.is_dir() else given.parent
    files = sorted(path for path in given.rglob("*") if path.is_file()) if given.is_dir() else [given]
    kept = [file for file in files if not {"__pycache__", "node_modules", ".git"} & set(file.relative_to(root).parts)]
    if sum(item.stat().st_size for item in kept) > LARGEST_TESTS or len(kept) > MOST_TESTS:
        raise ConfigError(
            f"{given} is too large for --spec-tests", remedy=f"give at most {MOST_TESTS} files, 1 MB in total"
        )
    folder = programs.test_folder
    found: dict[str, bytes | None] = {
        f"{folder}/{item.relative_to(root).as_posix()}": item.read_bytes() for item in kept
    }
    if not any(map(programs.is_test, found)):
        raise ConfigError(f"{given} contains no test file", remedy=_NAMES)
    return found
