"""The use cases behind `redstart eval`, without its display, and the instruments that replace a model, by name."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from redstart.app.runs import CandidateRequest
from redstart.app.settings import Settings
from redstart.app.settings.store import find_tenant_folder
from redstart.app.wire import AppContext, create_rate_limits, create_trial_store, open_app, open_database
from redstart.core.errors import ConfigError
from redstart.core.events import Event
from redstart.core.frozen import clip
from redstart.core.run import Level, Limits
from redstart.engines.port import DEFAULT
from redstart.evals.grading import Grader
from redstart.evals.measurement import list_true_fixes
from redstart.evals.outcome import EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.runner import Evaluation, ModelFor, digest_tasks
from redstart.evals.scripted_models import NoisyOracle, OracleAtRecall
from redstart.evals.task import Task
from redstart.evals.task_repo import TaskFolder, open_site
from redstart.evals.verify import (
    REPEATS,
    TaskCheck,
    build_baselines,
    keep_verified,
    read_verified,
    remove_partial_line,
    verify,
)
from redstart.ports.model.port import Model
from redstart.ports.trials.port import Trials
from redstart.ports.world.port import World

PREFIX = "instrument:"
KNOWN_INSTRUMENTS = f"{PREFIX}{OracleAtRecall.name} or {PREFIX}{NoisyOracle.name}:RIGHT[:RISE]"


def instrument_for(app: AppContext, name: str) -> ModelFor | None:
    """Return a function that makes the instrument of each run. None if `name` names a model.

    A noisy oracle is right with the probability RIGHT, which rises by RISE with each attempt. Raises `ConfigError` for
    an unknown instrument.
    """
    if not name.startswith(PREFIX):
        return None
    kind, *numbers = name.removeprefix(PREFIX).split(":")
    if kind == OracleAtRecall.name and not numbers:
        return lambda task_folder, _key: OracleAtRecall(list_true_fixes(app, task_folder))
    if kind != NoisyOracle.name or len(numbers) not in (1, 2):
        raise ConfigError(f"unknown instrument {name}", remedy=f"use {KNOWN_INSTRUMENTS}")
    try:
        success_rate, rise = (*map(float, numbers), 0.0)[:2]
    except ValueError as error:
        raise ConfigError(f"{name}: a probability must be a number from 0 to 1") from error

    def create_noisy_oracle(task_folder: TaskFolder, key: RunKey) -> Model:
        return NoisyOracle(list_true_fixes(app, task_folder), success_rate=success_rate, rise=rise, seed=str(key))

    return create_noisy_oracle


_UNSAFE_CHARACTERS = re.compile(r"[^\w.-]+")
_ODD_TENANT = re.compile(r"[^a-z0-9-]")


def make_safe_name(text: str) -> str:
    """Return the text as a name for an evaluation, which is also the name of files."""
    return _UNSAFE_CHARACTERS.sub("-", text).strip("-.")


class EvaluationRequest(NamedTuple):
    """The options of an evaluation."""

    source: str
    name: str = ""
    """Empty for a name made from the source and the model."""
    runs: int = 1
    seeds: int = 1
    limits: Limits = Limits()
    verify: Level = Level.standard
    max_tool_calls: int | None = None
    engine: str = DEFAULT
    has_memory: bool = False
    candidates: CandidateRequest = CandidateRequest()


def build_plan(request: EvaluationRequest, tasks: Sequence[Task], model: str) -> EvaluationPlan:
    """Make the plan. Raises `ConfigError` if there is no task or no model."""
    if not tasks:
        raise ConfigError(f"{request.source} has no usable task")
    if not model:
        raise ConfigError("no model is configured", remedy=f"choose one with -m; {PREFIX}oracle-at-recall needs no key")
    default_name = make_safe_name(f"{Path(request.source).stem}-{model}")
    return EvaluationPlan(
        name=make_safe_name(request.name) or default_name,
        source=request.source,
        tasks=digest_tasks(tasks),
        model=model,
        engine=request.engine,
        runs=request.runs,
        seeds=tuple(range(request.seeds)),
        limits=request.limits,
        verify=request.verify,
        looks=request.max_tool_calls,
        remembers=request.has_memory,
        candidates=request.candidates.number,
        escalate=request.candidates.escalate,
        choose=request.candidates.choose,
    )


class EvaluationContext(NamedTuple):
    """The app context of an evaluation, and the evaluations of the user."""

    app: AppContext
    """Its own context: its runs and what they learn are kept apart from all others. It has no sandbox yet."""
    trials: Trials
    """The evaluations of the user."""


@contextmanager
def open_lab(
    settings: Settings, name: str, *, listen: Callable[[Event], None] | None = None, world: World | None = None
) -> Generator[EvaluationContext]:
    """Open the store for an evaluation of that name, and close everything at the end.

    Raises `StoreError`, and `ConfigError` while another process on this machine runs the same evaluation.
    """
    apart = settings.model_copy(update={"tenant": make_tenant_name(settings.tenant, name)})
    with (
        _lock_evaluation(find_tenant_folder(apart.home, apart.tenant), name),
        open_database(settings) as database,
        open_app(apart, listen=listen, world=world, root_database=database) as app,
    ):
        user_database = database.for_tenant(settings.tenant)
        yield EvaluationContext(
            replace(app, rates=create_rate_limits(user_database)), create_trial_store(user_database)
        )


@contextmanager
def _lock_evaluation(folder: Path, name: str) -> Generator[None]:
    """Lock the evaluation. Two processes would lose nothing, but would do and pay for every run twice."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = "wait until it ends, or use another --name"
            raise ConfigError(f"evaluation {name} is running in another process", remedy=remedy) from error
        yield


@contextmanager
def open_trials(settings: Settings) -> Generator[Trials]:
    """Open the evaluations of the user, and close the store at the end. Raises `StoreError`."""
    with open_database(settings) as database:
        yield create_trial_store(database.for_tenant(settings.tenant))


def make_tenant_name(user: str, name: str) -> str:
    """Return the tenant of an evaluation's runs. Each evaluation of each user has its own."""
    mark = hashlib.sha256(f"{user}/{name}".encode()).hexdigest()[:8]
    return f"eval.{_ODD_TENANT.sub('-', name.lower())[:40]}.{mark}"


def open_evaluation(
    app: AppContext,
    trials: Trials,
    plan: EvaluationPlan,
    tasks: Sequence[Task],
    on_outcome: Callable[[RunOutcome], None],
) -> Evaluation:
    """Begin the evaluation, or continue it. `app` has a sandbox. Raises as `Results.open` does."""
    work = find_tenant_folder(app.settings.home, app.settings.tenant) / "work"
    model_for = instrument_for(app, plan.model)
    baselines = build_baselines(read_verified(get_checks_file(app.settings)))
    create_evaluation = partial(
        Evaluation, plan=plan, tasks=tasks, results=Results.open(trials, plan), work=work, on_outcome=on_outcome
    )
    if model_for is None:
        return create_evaluation(app.with_model(), standards=baselines)
    return create_evaluation(app, model_for=model_for, standards=baselines)


def without_unverified(settings: Settings, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks without those that a check found unusable. Tasks that were never checked stay."""
    checks = read_verified(get_checks_file(settings))
    return [task for task in tasks if task.digest not in checks or checks[task.digest].ok]


async def verify_all(app: AppContext, tasks: Sequence[Task], repeats: int = REPEATS) -> AsyncIterator[TaskCheck]:
    """Check each task by running it, and store the result. A task that is already checked is not run again.

    `app` has a sandbox.
    """
    file = get_checks_file(app.settings)
    remove_partial_line(file)
    checks, grader = read_verified(file), Grader(app)
    for task in tasks:
        if task.digest not in checks:
            check = await _check_task(app, grader, task, repeats)
            keep_verified(file, check)
            checks[task.digest] = check
        yield checks[task.digest]


async def _check_task(app: AppContext, grader: Grader, task: Task, repeats: int) -> TaskCheck:
    with tempfile.TemporaryDirectory() as work:
        try:
            task_folder = open_site(app, task, Path(work) / task.slug)
        except ConfigError as error:
            return TaskCheck(task=task.id, digest=task.digest, ok=False, why=clip(str(error), 300))
        return await verify(grader, task_folder, repeats)


def format_predictions(results: Results) -> list[str]:
    """Format one line of JSON per task for SWE-bench: the patch of its first run that reported green."""
    patches: dict[str, str] = {}
    for row in results.list_rows():
        if not patches.get(row.key.task):
            patches[row.key.task] = row.patch
    return [
        json.dumps(
            {
                "instance_id": task,
                "model_name_or_path": f"redstart {results.plan.model}",
                "model_patch": patch,
            }
        )
        for task, patch in sorted(patches.items())
    ]


def get_checks_file(settings: Settings) -> Path:
    """Return the file of the checks of tasks."""
    return settings.home / "evals" / "verified.jsonl"
