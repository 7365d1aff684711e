"""Use cases: start, drive, replay, fork and find runs, and write their patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from posixpath import join, normpath
from typing import NamedTuple

from redstart.app.run_choices import build_run_options
from redstart.app.run_status import ALIKE, list_child_ids, load_row, resolve_row_status
from redstart.app.verify.revisions import find_branch_start
from redstart.app.wire import AppContext, create_question_options, load_profile
from redstart.app.workspace import Choose, MayLend, RunGround, equip, prepare_run_setup
from redstart.core.change import Snapshot
from redstart.core.chat import Tier
from redstart.core.errors import ConfigError
from redstart.core.run import (
    HINT_LIMIT,
    MOST_LOOKS,
    MOST_TESTS,
    RESULTS_WITH_PATCH,
    Attempt,
    Level,
    Limits,
    RunSpec,
    RunState,
    Status,
    Step,
    Suite,
)
from redstart.core.run_options import RunOptions
from redstart.core.run_preferences import QuestionOptions
from redstart.core.set_aside import SetAsidePolicy
from redstart.core.shell import Environment
from redstart.core.tasks import MOST_CANDIDATES, BranchStart, CandidatePlan, FastCandidates, FixTask
from redstart.engines.port import Engine
from redstart.engines.replay import ReplayResult
from redstart.engines.replay import replay as replay_run
from redstart.engines.step_driver import drive
from redstart.flow.loop import StepAdvance
from redstart.flow.modes import MODES
from redstart.toolkit.suites.detection.command import require_results
from redstart.toolkit.suites.detection.command_files import CommandFiles
from redstart.toolkit.suites.detection.history import find_work_root
from redstart.toolkit.suites.detection.target_language import has_tests
from redstart.toolkit.suites.selection import build_selector

NameTests = Callable[[str], str]
"""Takes a sentence that says that no test file is known; returns a glob of the test files."""


def find_test_files(
    app: AppContext, base: Snapshot, suite: Suite, test_globs: Sequence[str], name_tests: NameTests | None
) -> tuple[str, ...]:
    """List globs of the files that the suite's command starts from, and of those that the user names as tests.

    If Redstart only reads the report of a command and nothing shows which files are its tests, call the callback.
    Raises `ConfigError` if there is no callback, or if a glob of the user matches no file.
    """
    paths = tuple(app.trees.list_files(base))
    command_files = CommandFiles(suite.command, suite.folder, paths, partial(app.trees.read, base))
    inside = [path for path in paths if not suite.folder or path.startswith(f"{suite.folder}/")]
    if suite.junit and not (test_globs or command_files.named_files or has_tests(inside)):
        problem = "no test file is known for this test command"
        if name_tests is None:
            raise ConfigError(problem, remedy="specify the test files with --tests GLOB")
        test_globs = (name_tests(problem),)
    globs = [glob for text in test_globs for glob in _expand_globs(suite.folder, text)]
    if test_globs and not any(fnmatchcase(path.casefold(), glob.casefold()) for glob in globs for path in paths):
        raise ConfigError(
            f"no file of the project matches --tests {test_globs[0]}", remedy="give a glob of the test files"
        )
    all_globs = tuple(dict.fromkeys((*globs, *command_files.globs)))
    if len(all_globs) > MOST_TESTS:
        raise ConfigError(
            f"the test command names {len(all_globs)} files; the limit is {MOST_TESTS}",
            remedy="put it into a script, and give that with --test-cmd",
        )
    return all_globs


def _expand_globs(folder: str, text: str) -> list[str]:
    """Return globs relative to the tree. A folder stands for everything in it."""
    path = normpath(join(folder, text.strip()))
    return [path, f"{path}/*", *([path.replace("**/", "")] if "**/" in path else [])]


SESSION_CALLS = 40
"""Maximum tool calls of a working session, unless the user says otherwise."""


class CandidateRequest(NamedTuple):
    """The user's options for child runs that try the same fix."""

    number: int = 1
    """With 1, the run itself tries the fix."""
    escalate: bool = False
    """Whether the fast model writes the patches of all candidates but the last."""
    choose: bool = False
    """Whether to wait for all candidates and take the smallest patch, instead of the first that is verified."""


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
    max_tool_calls: int | None = None
    """The maximum number of tool calls per question; None for the limit of the model's profile."""
    approve: bool = False
    """Whether packages that are not on the allow list are approved in advance."""
    own_python: bool = False
    """Whether the tests run with Redstart's own interpreter, without looking for the project's (the demo)."""
    issue: str = ""
    """The problem in words; a failing test for it is written first."""
    tests: tuple[str, ...] = ()
    """Globs of test files that their names do not identify, relative to the project's folder."""
    session: bool | None = None
    """Whether the model works in a session; None for what its profile says."""
    fresh: bool = False
    """Whether each attempt starts from the original code, even if an earlier one fixed some of the tests."""
    set_aside: SetAsidePolicy = SetAsidePolicy.never
    """Whether failing tests may be set aside, and who decides."""
    candidates: CandidateRequest = CandidateRequest()


class RunFolder(NamedTuple):
    """The spec of a run that can start, and its folder."""

    spec: RunSpec
    path: Path


async def create_fix_run(
    app: AppContext,
    path: Path,
    request: RunRequest,
    choose: Choose | None = None,
    may_lend: MayLend | None = None,
    name_tests: NameTests | None = None,
) -> RunState:
    """Take a snapshot of the folder's git repo and store a new run on it. The folder is not changed.

    The first callback chooses one of several suites; without it, `ConfigError` lists them. `may_lend` decides whether
    Redstart's pytest runs the tests if the project's environment has none; without it, `ConfigError`.
    The last callback names the test files of a command if nothing shows them; without it, `ConfigError`.
    """
    run_folder = take_folder(app, path, request, choose, may_lend, name_tests)
    start = _find_branch_start(app, path, request)
    task = run_folder.spec.get_task(FixTask).model_copy(update={"branch_start": start})
    return await keep_run(app, run_folder.spec.model_copy(update={"task": task}), folder=run_folder.path)


def take_folder(
    app: AppContext,
    path: Path,
    request: RunRequest,
    choose: Choose | None = None,
    may_lend: MayLend | None = None,
    name_tests: NameTests | None = None,
) -> RunFolder:
    """Make the spec of a run on this folder from a snapshot of its git repo. Raises as `create_fix_run` does."""
    build_selector(request.targets, request.keyword)
    if request.issue and (request.targets or request.keyword):
        raise ConfigError(
            "--issue and test names cannot be combined", remedy="leave out the tests: --issue writes its own"
        )
    if len(request.hint) > HINT_LIMIT:
        raise ConfigError(f"the hint is longer than {HINT_LIMIT} characters", remedy="shorten it")
    require_results(request.command, request.junit)
    setup = prepare_run_setup(
        app, path, command=request.command, python=request.python, own_python=request.own_python, choose=choose
    )
    setup = setup if request.junit else equip(app, setup, may_lend)
    folder = setup.root / setup.folder
    suite = create_suite(app, setup, request.junit)
    spec = RunSpec(
        task=FixTask(
            targets=tuple(_to_runner_target(target, folder) for target in request.targets),
            keyword=request.keyword,
            issue=bool(request.issue),
            # The test that is written for an issue is about the code.
            set_aside=SetAsidePolicy.never if request.issue else request.set_aside,
            candidates=plan_candidates(app, request),
        ),
        goal=request.issue,
        base=setup.base,
        suite=suite,
        sandbox=setup.limits,
        limits=request.limits,
        hint=request.hint,
        protect=request.protect,
        tests=find_test_files(app, setup.base, suite, request.tests, name_tests),
        verify=request.verify,
        looks=resolve_max_tool_calls(app, request),
        reflect=app.settings.reflect,
        keep_clean=True,
        keep_together=True,
        keep_related=app.settings.keep_related,
        asks=choose_question_options(app, request),
        checks=app.settings.checks.checks,
        # Edits stay in the suite's own folder and the paths that the user adds.
        scope=(setup.folder, *request.scope) if setup.folder else request.scope,
        repo=folder.name,
        tenant=app.settings.tenant,
        explore=app.settings.memory.explore,
        keeps_gain=not request.fresh,
    )
    return RunFolder(spec, folder)


def _find_branch_start(app: AppContext, path: Path, request: RunRequest) -> BranchStart | None:
    """Find what the failing tests are compared with. None if the user says which of them are the targets."""
    is_chosen = request.targets or request.keyword or request.issue or request.set_aside is SetAsidePolicy.all_red
    start = None if is_chosen else find_branch_start(app.trees, find_work_root(path))
    return BranchStart(name=start.version.name, snapshot=start.snapshot) if start else None


def _to_runner_target(target: str, folder: Path) -> str:
    """Name a target as the runner, started in `folder`, does. A path is relative to the user's directory."""
    file, mark, suffix = target.partition("::")
    path = Path(file).resolve()
    is_path = path.exists() and path.is_relative_to(folder)
    return f"{path.relative_to(folder).as_posix()}{mark}{suffix}" if is_path else target


async def go_on(app: AppContext, run_id: str, engine: Engine, last_step: Step | None = None) -> StepAdvance:
    """Claim a run and drive it until it ends, waits or has finished step `last_step`."""
    claim = await app.adapters.store.claim(run_id)
    return await drive(app.adapters, claim, engine, last_step)


async def replay(app: AppContext, run_id: str) -> ReplayResult:
    """Replay the run and its child runs from their journals alone. Raises `ReplayDiverged` at the first difference."""
    result = await replay_run(app.adapters, run_id)
    for id_ in await list_child_ids(app, result.state):
        part = await replay_run(app.adapters, id_)
        result = result._replace(steps=result.steps + part.steps, calls=result.calls + part.calls)
    return result


async def fork(app: AppContext, run_id: str, attempt: int, step: Step, limits: Limits | None = None) -> RunState:
    """Create a run that continues from this one's state after that step. Raises `ConfigError` if it never finished."""
    rows = [row for row in await app.adapters.store.list_steps(run_id) if (row.attempt, row.step) == (attempt, step)]
    if not rows:
        raise ConfigError(
            f"run {run_id} has no step {step.value} in attempt {attempt}",
            remedy=f"see its attempts with: redstart show {run_id}",
        )
    source = rows[0].state
    spec = source.spec.model_copy(update={"parent": run_id, "limits": limits or source.spec.limits})
    state = source.model_copy(update={"run_id": app.adapters.world.generate_id(), "spec": spec})
    (row,) = await app.adapters.store.list_runs(prefix=run_id, limit=1)
    await app.adapters.store.create(state, folder=row.folder, created=app.moment, options=row.options)
    return state


async def find_run(app: AppContext, prefix: str | None, folder: Path, *, include_cancelled: bool = False) -> str:
    """Return the run ID that starts with the prefix or, without one, the last run of this folder that is not cancelled.

    With `include_cancelled`, return the last run of the folder if all of them were cancelled. Raises `ConfigError` if
    no run or several match.
    """
    store = app.adapters.store
    if prefix is None:
        now = app.adapters.world.now()
        rows = await store.list_runs(folder=str(folder.resolve()), limit=ALIKE)
        candidates = [row for row in rows if resolve_row_status(row, now) is not Status.cancelled] or (
            rows if include_cancelled else []
        )
        if not candidates:
            problem = "every run in this folder was cancelled" if rows else "there is no run in this folder"
            raise ConfigError(problem, remedy="list all runs with: redstart runs list")
        return candidates[0].run_id
    rows = await store.list_runs(prefix=prefix, limit=ALIKE)
    if not rows:
        raise ConfigError(f"there is no run '{prefix}'", remedy="list all runs with: redstart runs list")
    if any(row.run_id == prefix for row in rows):
        return prefix
    if len(rows) > 1:
        raise ConfigError(f"more than one run ID begins with '{prefix}'", remedy="type more of the ID")
    return rows[0].run_id


async def load_stored_options(app: AppContext, run_id: str) -> RunOptions | None:
    """Load the options stored with the run, or with the run that started a child run. None for runs of old versions."""
    row = await load_row(app, run_id)
    if row.options is None and "." in run_id:
        return await load_stored_options(app, run_id.rpartition(".")[0])
    return row.options


def get_result_snapshot(state: RunState) -> Snapshot | None:
    """Return the snapshot with the patch of a run that ended with one; None if there is nothing to hand over.

    The patch of an unproven or partial run must not be applied unless a person asks for it.

    For `improve`, return the last good version: each improvement is verified, and more may follow.
    """
    if state.spec.has_cycles:
        return state.draft if state.work.kept else None
    return state.now.made if state.result in RESULTS_WITH_PATCH else None


def write_patch(app: AppContext, state: RunState, to: Path | None = None) -> Path | None:
    """Write the run's patch to a file, by default in our own data. The repo is not changed. None if there is no
    patch."""
    snapshot = get_result_snapshot(state)
    if snapshot is None:
        return None
    path = to or app.settings.home / "patches" / f"{state.run_id}.patch"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(app.trees.diff(state.spec.base, snapshot))
    return path


async def keep_run(app: AppContext, spec: RunSpec, folder: Path) -> RunState:
    """Create a run from its spec and store it."""
    entry = MODES[spec.mode][0]
    run_id = app.adapters.world.generate_id()
    state = RunState(run_id=run_id, spec=spec, base=spec.base, now=Attempt(entry=entry))
    await create_run(app, state, folder)
    return state


async def create_run(app: AppContext, state: RunState, folder: Path) -> None:
    """Store a new run with the options that are in force."""
    options = build_run_options(app.settings, app.flags)
    await app.adapters.store.create(state, folder=str(folder), created=app.moment, options=options)


def resolve_max_tool_calls(app: AppContext, request: RunRequest, tier: Tier = Tier.strong) -> int:
    """Return the maximum number of tool calls: the user's choice, else the limit of the model's profile."""
    return min(
        load_profile(app.settings, tier=tier).looks if request.max_tool_calls is None else request.max_tool_calls,
        MOST_LOOKS,
    )


def plan_candidates(app: AppContext, request: RunRequest) -> CandidatePlan | None:
    """Plan the candidates of a run; None if the run itself tries the fix.

    Raises `ConfigError` if the options contradict each other, or if there is no fast model to begin with.
    """
    count, escalate, choose = request.candidates
    if count < 2:
        if escalate or choose:
            flag = "--escalate" if escalate else "--choose"
            raise ConfigError(f"{flag} needs several candidates", remedy=f"use it with --candidates 3 {flag}")
        return None
    if count > MOST_CANDIDATES:
        raise ConfigError(f"--candidates {count} is too many", remedy=f"use at most {MOST_CANDIDATES}")
    return CandidatePlan(
        count=count, fast=_plan_fast_candidates(app, request, count - 1) if escalate else None, choose=choose
    )


def _plan_fast_candidates(app: AppContext, request: RunRequest, count: int) -> FastCandidates:
    models = app.settings.models
    fast, strong = (models.roster.get_default_model("patch", tier) for tier in (Tier.fast, Tier.strong))
    if fast == strong:
        raise ConfigError(
            "--escalate needs a fast model that writes patches, and there is only one model for them",
            remedy="set models.fast, and leave models.steps.patch empty",
        )
    return FastCandidates(
        count=count,
        # After more attempts, the strong model would be asked instead.
        attempts=min(request.limits.attempts, models.escalate or request.limits.attempts),
        asks=choose_question_options(app, request, Tier.fast),
        looks=resolve_max_tool_calls(app, request, Tier.fast),
    )


def choose_question_options(app: AppContext, request: RunRequest, tier: Tier = Tier.strong) -> QuestionOptions:
    """Return how models are asked: as their profiles say, but that the user may choose or refuse a working session."""
    options, profile = create_question_options(app.settings, tier), load_profile(app.settings, tier=tier)
    uses_session = profile.session if request.session is None else request.session
    limit = SESSION_CALLS if request.max_tool_calls is None else request.max_tool_calls
    return options.model_copy(update={"session_calls": min(limit, MOST_LOOKS) if uses_session else 0})


def create_suite(app: AppContext, ground: RunGround, junit: str) -> Suite:
    """Describe the suite that was detected, with its environment stored."""
    return Suite(
        runner=ground.runner,
        command=ground.command,
        environment=keep_environment(app, ground.environment),
        folder=ground.folder,
        junit=junit,
        detailed=True,
    )


def keep_environment(app: AppContext, environment: Environment) -> str:
    """Store an environment and return its blob name for the suite."""
    return app.adapters.blobs.put(environment.model_dump_json().encode())
