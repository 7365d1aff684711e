"""Use cases: start, drive, replay, fork and find runs, and write their patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from posixpath import join, normpath
from typing import NamedTuple

from redstart.app.choices import options_of
from redstart.app.ground import Choose, MayLend, equip, take_ground
from redstart.app.standing import ALIKE, part_ids, row_of, row_status
from redstart.app.wire import AppContext, asking, profile
from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.run import (
    HINT_LIMIT,
    MOST_LOOKS,
    MOST_TESTS,
    Attempt,
    Level,
    Limits,
    Result,
    RunSpec,
    RunState,
    Status,
    Step,
    Suite,
)
from redstart.core.run_options import RunOptions
from redstart.core.shell import Environment
from redstart.core.tasks import FixTask
from redstart.engines.drive import drive
from redstart.engines.port import Engine
from redstart.engines.replay import ReplayResult
from redstart.engines.replay import replay as replay_run
from redstart.flow.loop import StepAdvance
from redstart.flow.modes import MODES
from redstart.toolkit.suites.detection.command import require_results
from redstart.toolkit.suites.detection.command_files import CommandFiles
from redstart.toolkit.suites.detection.target_language import has_tests
from redstart.toolkit.suites.select import chooser

NameTests = Callable[[str], str]
"""Takes a sentence that says that no test file is known; returns a glob of the test files."""


def files_of_tests(
    house: AppContext, base: Snapshot, suite: Suite, given: Sequence[str], name_tests: NameTests | None
) -> tuple[str, ...]:
    """List globs of the files that the suite's command starts from, and of those that the user names as tests.

    If Redstart only reads the report of a command and nothing shows which files are its tests, call the callback.
    Raises `ConfigError` if there is no callback, or if a glob of the user matches no file.
    """
    paths = tuple(house.trees.files(base))
    started = CommandFiles(suite.command, suite.folder, paths, partial(house.trees.read, base))
    inside = [path for path in paths if not suite.folder or path.startswith(f"{suite.folder}/")]
    if suite.junit and not (given or started.named or has_tests(inside)):
        what = "no test file is known for this test command"
        if name_tests is None:
            raise ConfigError(what, remedy="name the test files with --tests GLOB")
        given = (name_tests(what),)
    globs = [glob for text in given for glob in _globs(suite.folder, text)]
    if given and not any(fnmatchcase(path.casefold(), glob.casefold()) for glob in globs for path in paths):
        raise ConfigError(f"no file of the project matches --tests {given[0]}", remedy="give a glob of the test files")
    every = tuple(dict.fromkeys((*globs, *started.globs)))
    if len(every) > MOST_TESTS:
        raise ConfigError(
            f"the test command names {len(every)} files; the limit is {MOST_TESTS}",
            remedy="put it into a script, and give that with --test-cmd",
        )
    return every


def _globs(folder: str, text: str) -> list[str]:
    """Return globs relative to the tree. A folder stands for everything in it."""
    plain = normpath(join(folder, text.strip()))
    return [plain, f"{plain}/*", *([plain.replace("**/", "")] if "**/" in plain else [])]


class RunRequest(NamedTuple):
    """The user's options for a run, besides the folder and the mode."""

    limits: Limits
    command: tuple[str, ...] = ()
    hint: str = ""
    protect: tuple[str, ...] = ()
    python: str | None = None
    targets: tuple[str, ...] = ()
    """Test IDs, files or folders, as the runner names them or as paths relative to the user's directory."""
    keyword: str = ""
    scope: tuple[str, ...] = ()
    junit: str = ""
    verify: Level = Level.standard
    looks: int | None = None
    """The maximum number of tool calls per question; None for the limit of the model's profile."""
    approve: bool = False
    """Whether packages that are not on the allow list are approved in advance."""
    own_python: bool = False
    """Whether the tests run with Redstart's own interpreter, without looking for the project's (the demo)."""
    issue: str = ""
    """The problem in words; a failing test for it is written first."""
    tests: tuple[str, ...] = ()
    """Globs of test files that their names do not identify, relative to the project's folder."""


class RunFolder(NamedTuple):
    """The spec of a run that can start, and its folder."""

    spec: RunSpec
    path: Path


async def begin_fix(
    house: AppContext,
    path: Path,
    asked: RunRequest,
    choose: Choose | None = None,
    may_lend: MayLend | None = None,
    name_tests: NameTests | None = None,
) -> RunState:
    """Take a snapshot of the folder's git repo and store a new run on it. The folder is not changed.

    The first callback chooses one of several suites; without it, `ConfigError` lists them. `may_lend` decides whether
    Redstart's pytest runs the tests if the project's environment has none; without it, `ConfigError`.
    The last callback names the test files of a command if nothing shows them; without it, `ConfigError`.
    """
    taken = take_folder(house, path, asked, choose, may_lend, name_tests)
    return await keep_run(house, taken.spec, folder=taken.path)


def take_folder(
    house: AppContext,
    path: Path,
    asked: RunRequest,
    choose: Choose | None = None,
    may_lend: MayLend | None = None,
    name_tests: NameTests | None = None,
) -> RunFolder:
    """Make the spec of a run on this folder from a snapshot of its git repo. Raises as `begin_fix` does."""
    chooser(asked.targets, asked.keyword)
    if asked.issue and (asked.targets or asked.keyword):
        raise ConfigError(
            "--issue and test names cannot be combined", remedy="leave out the tests: --issue writes its own"
        )
    if len(asked.hint) > HINT_LIMIT:
        raise ConfigError(f"the hint is longer than {HINT_LIMIT} characters", remedy="shorten it")
    require_results(asked.command, asked.junit)
    ground = take_ground(
        house, path, command=asked.command, python=asked.python, own_python=asked.own_python, choose=choose
    )
    ground = ground if asked.junit else equip(house, ground, may_lend)
    folder = ground.root / ground.folder
    suite = Suite(
        runner=ground.runner,
        command=ground.command,
        environment=keep_environment(house, ground.environment),
        folder=ground.folder,
        junit=asked.junit,
    )
    spec = RunSpec(
        task=FixTask(
            targets=tuple(_as_shown(target, folder) for target in asked.targets),
            keyword=asked.keyword,
            issue=bool(asked.issue),
        ),
        goal=asked.issue,
        base=ground.base,
        suite=suite,
        sandbox=ground.limits,
        limits=asked.limits,
        hint=asked.hint,
        protect=asked.protect,
        tests=files_of_tests(house, ground.base, suite, asked.tests, name_tests),
        verify=asked.verify,
        looks=looks_of(house, asked),
        reflect=house.settings.reflect,
        asks=asking(house.settings),
        checks=house.settings.checks.checks,
        # Edits stay in the suite's own folder and the paths that the user adds.
        scope=(ground.folder, *asked.scope) if ground.folder else asked.scope,
        repo=folder.name,
        tenant=house.settings.tenant,
        explore=house.settings.memory.explore,
    )
    return RunFolder(spec, folder)


def _as_shown(target: str, folder: Path) -> str:
    """Name a target as the runner, started in `folder`, does. A path is relative to the user's directory."""
    file, mark, rest = target.partition("::")
    there = Path(file).resolve()
    is_path = there.exists() and there.is_relative_to(folder)
    return f"{there.relative_to(folder).as_posix()}{mark}{rest}" if is_path else target


async def go_on(house: AppContext, run_id: str, engine: Engine, until: Step | None = None) -> StepAdvance:
    """Claim a run and drive it until it ends, waits or has finished step `until`."""
    claim = await house.adapters.store.claim(run_id)
    return await drive(house.adapters, claim, engine, until)


async def replay(house: AppContext, run_id: str) -> ReplayResult:
    """Replay the run and its child runs from their journals alone. Raises `ReplayDiverged` at the first difference."""
    done = await replay_run(house.adapters, run_id)
    for id_ in await part_ids(house, done.state):
        part = await replay_run(house.adapters, id_)
        done = done._replace(steps=done.steps + part.steps, calls=done.calls + part.calls)
    return done


async def fork(house: AppContext, run_id: str, attempt: int, step: Step, limits: Limits | None = None) -> RunState:
    """Create a run that continues from this one's state after that step. Raises `ConfigError` if it never finished."""
    rows = [row for row in await house.adapters.store.steps(run_id) if (row.attempt, row.step) == (attempt, step)]
    if not rows:
        raise ConfigError(
            f"run {run_id} has no step {step.value} in attempt {attempt}",
            remedy=f"see its attempts with: redstart show {run_id}",
        )
    source = rows[0].state
    spec = source.spec.model_copy(update={"parent": run_id, "limits": limits or source.spec.limits})
    state = source.model_copy(update={"run_id": house.adapters.world.fresh_id(), "spec": spec})
    (row,) = await house.adapters.store.runs(prefix=run_id, limit=1)
    await house.adapters.store.create(state, folder=row.folder, created=house.moment, options=row.options)
    return state


async def find_run(house: AppContext, given: str | None, folder: Path, *, cancelled: bool = False) -> str:
    """Return the run ID that starts with the prefix or, without one, the last run of this folder that is not cancelled.

    With `cancelled`, return the last run of the folder if all of them were cancelled. Raises `ConfigError` if no run or
    several match.
    """
    store = house.adapters.store
    if given is None:
        now = house.adapters.world.now()
        rows = await store.runs(folder=str(folder.resolve()), limit=ALIKE)
        kept = [row for row in rows if row_status(row, now) is not Status.cancelled] or (rows if cancelled else [])
        if not kept:
            what = "every run in this folder was cancelled" if rows else "there is no run in this folder"
            raise ConfigError(what, remedy="list all runs with: redstart runs list")
        return kept[0].run_id
    rows = await store.runs(prefix=given, limit=ALIKE)
    if not rows:
        raise ConfigError(f"there is no run {given}", remedy="list all runs with: redstart runs list")
    if any(row.run_id == given for row in rows):
        return given
    if len(rows) > 1:
        raise ConfigError(f"more than one run begins with {given}", remedy="type more of the ID")
    return rows[0].run_id


async def stored_options(house: AppContext, run_id: str) -> RunOptions | None:
    """Load the options stored with the run, or with the run that started a child run. None for runs of old versions."""
    row = await row_of(house, run_id)
    if row.options is None and "." in run_id:
        return await stored_options(house, run_id.rpartition(".")[0])
    return row.options


def result_snapshot(state: RunState) -> Snapshot | None:
    """Return the snapshot with the patch of a verified or unproven run; None if there is nothing to hand over.

    For `improve`, return the last good version: each improvement is verified, and more may follow.
    """
    if state.spec.begins_cycles:
        return state.draft if state.work.kept else None
    return state.now.made if state.result in (Result.verified, Result.unproven) else None


def write_patch(house: AppContext, state: RunState, to: Path | None = None) -> Path | None:
    """Write the run's patch to a file, by default in our own data. The repo is not changed. None if there is no
    patch."""
    snapshot = result_snapshot(state)
    if snapshot is None:
        return None
    path = to or house.settings.home / "patches" / f"{state.run_id}.patch"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(house.trees.diff(state.spec.base, snapshot))
    return path


async def keep_run(house: AppContext, spec: RunSpec, folder: Path) -> RunState:
    """Create a run from its spec and store it."""
    entry = MODES[spec.mode][0]
    run_id = house.adapters.world.fresh_id()
    state = RunState(run_id=run_id, spec=spec, base=spec.base, now=Attempt(entry=entry))
    await create_run(house, state, folder)
    return state


async def create_run(house: AppContext, state: RunState, folder: Path) -> None:
    """Store a new run with the options that are in force."""
    options = options_of(house.settings, house.flags)
    await house.adapters.store.create(state, folder=str(folder), created=house.moment, options=options)


def looks_of(house: AppContext, asked: RunRequest) -> int:
    """Return the maximum number of tool calls: the user's choice, else the limit of the model's profile."""
    return min(profile(house.settings).looks if asked.looks is None else asked.looks, MOST_LOOKS)


def keep_environment(house: AppContext, environment: Environment) -> str:
    """Store an environment and return its blob name for the suite."""
    return house.adapters.blobs.put(environment.model_dump_json().encode())
