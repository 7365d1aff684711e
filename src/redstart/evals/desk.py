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

from redstart.app.settings import Settings
from redstart.app.settings.store import folder_of
from redstart.app.wire import AppContext, open_database, open_house, rates_of, trials_of
from redstart.core.errors import ConfigError
from redstart.core.events import Event
from redstart.core.noun import clip
from redstart.core.run import Level, Limits
from redstart.engines.port import DEFAULT
from redstart.evals.grading import Grader
from redstart.evals.measure import true_fixes
from redstart.evals.oracles import NoisyOracle, OracleAtRecall
from redstart.evals.outcome import EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.runner import Evaluation, ModelFor, digest_of
from redstart.evals.sealed import TaskFolder, open_site
from redstart.evals.task import Task
from redstart.evals.verify import REPEATS, TaskCheck, keep_verified, mend, read_verified, standards, verify
from redstart.ports.model.port import Model
from redstart.ports.trials.port import Trials
from redstart.ports.world.port import World

PREFIX = "instrument:"
KNOWN = f"{PREFIX}{OracleAtRecall.name} or {PREFIX}{NoisyOracle.name}:RIGHT[:RISE]"


def instrument_for(house: AppContext, name: str) -> ModelFor | None:
    """Return a function that makes the instrument of each run. None if `name` names a model.

    A noisy oracle is right with the probability RIGHT, which rises by RISE with each attempt. Raises `ConfigError` for
    an unknown instrument.
    """
    if not name.startswith(PREFIX):
        return None
    kind, *numbers = name.removeprefix(PREFIX).split(":")
    if kind == OracleAtRecall.name and not numbers:
        return lambda site, _key: OracleAtRecall(true_fixes(house, site))
    if kind != NoisyOracle.name or len(numbers) not in (1, 2):
        raise ConfigError(f"unknown instrument {name}", remedy=f"use {KNOWN}")
    try:
        right, rise = (*map(float, numbers), 0.0)[:2]
    except ValueError as error:
        raise ConfigError(f"{name}: a probability must be a number from 0 to 1") from error

    def noisy(site: TaskFolder, key: RunKey) -> Model:
        return NoisyOracle(true_fixes(house, site), right=right, rise=rise, seed=str(key))

    return noisy


_ODD = re.compile(r"[^\w.-]+")
_ODD_TENANT = re.compile(r"[^a-z0-9-]")


class EvaluationRequest(NamedTuple):
    """The options of an evaluation."""

    source: str
    name: str = ""
    """Empty for a name made from the source and the model."""
    runs: int = 1
    seeds: int = 1
    limits: Limits = Limits()
    verify: Level = Level.standard
    looks: int | None = None
    engine: str = DEFAULT
    remembers: bool = False


def plan_of(wanted: EvaluationRequest, tasks: Sequence[Task], model: str) -> EvaluationPlan:
    """Make the plan. Raises `ConfigError` if there is no task or no model."""
    if not tasks:
        raise ConfigError(f"{wanted.source} has no usable task")
    if not model:
        raise ConfigError("no model is configured", remedy=f"choose one with -m; {PREFIX}oracle-at-recall needs no key")
    plain = _ODD.sub("-", f"{Path(wanted.source).stem}-{model}").strip("-.")
    return EvaluationPlan(
        name=_ODD.sub("-", wanted.name).strip("-.") or plain,
        source=wanted.source,
        tasks=digest_of(tasks),
        model=model,
        engine=wanted.engine,
        runs=wanted.runs,
        seeds=tuple(range(wanted.seeds)),
        limits=wanted.limits,
        verify=wanted.verify,
        looks=wanted.looks,
        remembers=wanted.remembers,
    )


class EvaluationContext(NamedTuple):
    """What an evaluation runs in."""

    house: AppContext
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
    apart = settings.model_copy(update={"tenant": tenant_of(settings.tenant, name)})
    with (
        _alone(folder_of(apart.home, apart.tenant), name),
        open_database(settings) as database,
        open_house(apart, listen=listen, world=world, opened=database) as house,
    ):
        mine = database.of(settings.tenant)
        yield EvaluationContext(replace(house, rates=rates_of(mine)), trials_of(mine))


@contextmanager
def _alone(folder: Path, name: str) -> Generator[None]:
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
        yield trials_of(database.of(settings.tenant))


def tenant_of(user: str, name: str) -> str:
    """Return the tenant of an evaluation's runs. Each evaluation of each user has its own."""
    mark = hashlib.sha256(f"{user}/{name}".encode()).hexdigest()[:8]
    return f"eval.{_ODD_TENANT.sub('-', name.lower())[:40]}.{mark}"


def evaluation(
    house: AppContext, trials: Trials, plan: EvaluationPlan, tasks: Sequence[Task], tell: Callable[[RunOutcome], None]
) -> Evaluation:
    """Begin the evaluation, or continue it. `house` has a sandbox. Raises as `Results.open` does."""
    work = folder_of(house.settings.home, house.settings.tenant) / "work"
    model_for = instrument_for(house, plan.model)
    known = standards(read_verified(_verified_file(house.settings)))
    begun = partial(Evaluation, plan=plan, tasks=tasks, results=Results.open(trials, plan), work=work, tell=tell)
    if model_for is None:
        return begun(house.with_model(), standards=known)
    return begun(house, model_for=model_for, standards=known)


def without_unverified(settings: Settings, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks without those that a check found unusable. Tasks that were never checked stay."""
    known = read_verified(_verified_file(settings))
    return [task for task in tasks if task.digest not in known or known[task.digest].ok]


async def verify_all(house: AppContext, tasks: Sequence[Task], repeats: int = REPEATS) -> AsyncIterator[TaskCheck]:
    """Check each task by running it, and store the result. A task that is already checked is not run again.

    `house` has a sandbox.
    """
    file = _verified_file(house.settings)
    mend(file)
    known, grader = read_verified(file), Grader(house)
    for task in tasks:
        if task.digest not in known:
            found = await _verified(house, grader, task, repeats)
            keep_verified(file, found)
            known[task.digest] = found
        yield known[task.digest]


async def _verified(house: AppContext, grader: Grader, task: Task, repeats: int) -> TaskCheck:
    with tempfile.TemporaryDirectory() as work:
        try:
            site = open_site(house, task, Path(work) / task.slug)
        except ConfigError as error:
            return TaskCheck(task=task.id, digest=task.digest, ok=False, why=clip(str(error), 300))
        return await verify(grader, site, repeats)


def predictions(results: Results) -> list[str]:
    """Format one line of JSON per task for SWE-bench: the patch of its first run that reported green."""
    patches: dict[str, str] = {}
    for row in results.rows():
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


def write_page(file: Path, page: str) -> int:
    """Write a page and return its size in bytes. Raises `ConfigError` if the file cannot be written."""
    # Characters of a name that are not valid Unicode are replaced.
    data = page.encode(errors="replace")
    try:
        file.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", remedy="choose another file") from error
    return len(data)


def _verified_file(settings: Settings) -> Path:
    return settings.home / "evals" / "verified.jsonl"
