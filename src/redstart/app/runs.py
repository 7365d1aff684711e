"""Use cases: begin, go on, fork, and hand over what a run made. Writing to the user's folder happens only here."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

from redstart.app.ground import Choose, own_environment, served, take_ground
from redstart.app.wire import House, profile
from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.run import (
    GOAL_LIMIT,
    HINT_LIMIT,
    MOST_LOOKS,
    Attempt,
    Level,
    Limits,
    Mode,
    Result,
    RunSpec,
    RunState,
    Step,
    Suite,
)
from redstart.core.shell import Environment
from redstart.engines.drive import drive
from redstart.engines.port import Engine
from redstart.engines.replay import Replayed
from redstart.engines.replay import replay as replay_run
from redstart.flow.loop import Advanced
from redstart.flow.modes import MODES
from redstart.toolkit.repo.git import require_git
from redstart.toolkit.suites.environment import moved
from redstart.toolkit.suites.select import chooser


class Asked(NamedTuple):
    """What the user may say of a run besides where and what."""

    limits: Limits
    command: tuple[str, ...] = ()
    hint: str = ""
    protect: tuple[str, ...] = ()
    python: str | None = None
    targets: tuple[str, ...] = ()
    """Test ids, files or folders, as the runner names them or as paths from where the user is."""
    keyword: str = ""
    scope: tuple[str, ...] = ()
    junit: str = ""
    verify: Level = Level.standard
    looks: int | None = None
    """How often a model may look around for each question; None for what its profile says."""
    own_python: bool = False
    """Whether the tests run with redstart's own interpreter, without looking for the project's (the demo)."""


async def begin_fix(house: House, path: Path, asked: Asked, choose: Choose | None = None) -> RunState:
    """Takes a snapshot of the folder's git repo and keeps a new run on it. The folder is not touched.

    Where the folder holds several suites `choose` says which; without it they are listed in a `ConfigError`.
    """
    chooser(asked.targets, asked.keyword)
    if len(asked.hint) > HINT_LIMIT:
        raise ConfigError(f"the hint is longer than {HINT_LIMIT} characters", remedy="say it more shortly")
    ground = take_ground(
        house, path, command=asked.command, python=asked.python, own_python=asked.own_python, choose=choose
    )
    folder = ground.root / ground.folder
    suite = Suite(
        runner=ground.runner,
        command=asked.command,
        environment=_kept(house, ground.environment),
        folder=ground.folder,
        junit=asked.junit,
    )
    spec = RunSpec(
        mode=Mode.fix,
        base=ground.base,
        suite=suite,
        sandbox=ground.limits,
        limits=asked.limits,
        hint=asked.hint,
        protect=asked.protect,
        targets=tuple(_as_shown(target, folder) for target in asked.targets),
        keyword=asked.keyword,
        # Edits stay in the suite's own folder, and in what the user names beside it.
        verify=asked.verify,
        looks=_looks(house, asked),
        scope=(ground.folder, *asked.scope) if ground.folder else asked.scope,
        repo=folder.name,
    )
    return await _create(house, spec, folder=folder)


def _as_shown(target: str, folder: Path) -> str:
    """A target as the runner, started in `folder`, names it: a path is meant from where the user is."""
    file, mark, rest = target.partition("::")
    there = Path(file).resolve()
    is_path = there.exists() and there.is_relative_to(folder)
    return f"{there.relative_to(folder).as_posix()}{mark}{rest}" if is_path else target


async def begin_create(house: House, goal: str, out: Path, asked: Asked) -> RunState:
    """Keeps a new run that will write a program. Raises `ConfigError` if `out` holds anything already."""
    out = out.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not empty", remedy="name a folder that does not exist yet with -o")
    if not goal.strip():
        raise ConfigError("the goal is empty", remedy='say what to make: redstart create "a csv sorter" -o DIR')
    if len(goal) > GOAL_LIMIT:
        raise ConfigError(f"the goal is longer than {GOAL_LIMIT} characters", remedy="say it more shortly")
    require_git()
    package = _package_name(out.name)
    base = house.trees.write(house.trees.empty(), _skeleton(package, goal))
    there = next(folder for folder in out.parents if folder.is_dir())
    mounted = served(house, moved(own_environment(there), out))
    suite = Suite(runner="pytest", environment=_kept(house, mounted))
    spec = RunSpec(
        mode=Mode.create,
        goal=goal,
        base=base,
        suite=suite,
        limits=asked.limits,
        verify=asked.verify,
        looks=_looks(house, asked),
        repo=package,
    )
    return await _create(house, spec, folder=out)


async def go_on(house: House, run_id: str, engine: Engine, until: Step | None = None) -> Advanced:
    """Claims a run and drives it until it ends, waits or `until` is done."""
    claim = await house.adapters.store.claim(run_id)
    return await drive(house.adapters, claim, engine, until)


async def replay(house: House, run_id: str) -> Replayed:
    """The run once more from its journal alone. Raises `ReplayDiverged` at the first difference."""
    return await replay_run(house.adapters, run_id)


async def fork(house: House, run_id: str, attempt: int, step: Step, limits: Limits | None = None) -> RunState:
    """A new run that goes on from where this one stood after that step. Raises `ConfigError` if it never did."""
    rows = [row for row in await house.adapters.store.steps(run_id) if (row.attempt, row.step) == (attempt, step)]
    if not rows:
        raise ConfigError(f"run {run_id} never did {step.value} in attempt {attempt}")
    source = rows[0].state
    spec = source.spec.model_copy(update={"parent": run_id, "limits": limits or source.spec.limits})
    state = source.model_copy(update={"run_id": house.adapters.world.fresh_id(), "spec": spec})
    (row,) = await house.adapters.store.runs(prefix=run_id, limit=1)
    await house.adapters.store.create(state, folder=row.folder, created=house.moment)
    return state


async def find_run(house: House, given: str | None, folder: Path) -> str:
    """The id that `given` begins, or this folder's last run. Raises `ConfigError` where there is none, or several."""
    store = house.adapters.store
    if given is None:
        rows = await store.runs(folder=str(folder.resolve()), limit=1)
        if not rows:
            raise ConfigError("there is no run of this folder", remedy="redstart runs list shows every run")
        return rows[0].run_id
    rows = await store.runs(prefix=given, limit=2)
    if not rows:
        raise ConfigError(f"there is no run {given}", remedy="redstart runs list shows every run")
    if len(rows) > 1 and rows[0].run_id != given:
        raise ConfigError(f"more than one run begins with {given}", remedy="give more of the id")
    return given if any(row.run_id == given for row in rows) else rows[0].run_id


def result_snapshot(state: RunState) -> Snapshot | None:
    """What a verified run made; None where there is nothing to hand over."""
    return state.now.made if state.result is Result.verified else None


def write_patch(house: House, state: RunState, to: Path | None = None) -> Path | None:
    """Writes the verified patch to a file, by default among our own data; the repo is not touched."""
    snapshot = result_snapshot(state)
    if snapshot is None:
        return None
    path = to or house.settings.home / "patches" / f"{state.run_id}.patch"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(house.trees.diff(state.spec.base, snapshot))
    return path


def write_project(house: House, state: RunState, out: Path) -> bool:
    """Puts a created program into its folder. Done before with the same files, it changes nothing.

    Raises `ConfigError` if the folder holds something else.
    """
    snapshot = result_snapshot(state)
    if snapshot is None:
        return False
    if out.exists() and any(out.iterdir()):
        if house.trees.take(out).tree == snapshot.tree:
            return True
        raise ConfigError(f"{out} is not empty any more", remedy="empty it, then: redstart resume")
    out.parent.mkdir(parents=True, exist_ok=True)
    with house.trees.checkout(snapshot) as made:
        shutil.copytree(made, out, dirs_exist_ok=True, symlinks=True)
    return True


async def _create(house: House, spec: RunSpec, folder: Path) -> RunState:
    entry = MODES[spec.mode][0]
    run_id = house.adapters.world.fresh_id()
    state = RunState(run_id=run_id, spec=spec, base=spec.base, now=Attempt(entry=entry))
    await house.adapters.store.create(state, folder=str(folder), created=house.moment)
    return state


def _looks(house: House, asked: Asked) -> int:
    return min(profile(house.settings).looks if asked.looks is None else asked.looks, MOST_LOOKS)


def _kept(house: House, environment: Environment) -> str:
    return house.adapters.blobs.put(environment.model_dump_json().encode())


def _package_name(folder: str) -> str:
    name = re.sub(r"\W+", "_", folder.lower()).strip("_")
    return name if name.isidentifier() else f"p_{name}"


def _skeleton(package: str, goal: str) -> dict[str, bytes | None]:
    project = f'[project]\nname = "{package.replace("_", "-")}"\nversion = "0.1.0"\nrequires-python = ">=3.11"\n'
    options = '\n[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n'
    return {
        "pyproject.toml": (project + options).encode(),
        "README.md": f"# {package}\n\n{goal.strip()}\n".encode(),
        ".gitignore": b"__pycache__/\n.venv/\n",
    }
