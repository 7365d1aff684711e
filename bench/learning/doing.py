"""One arm as an evaluation: the tasks run one after the other, so that lessons of a run reach the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from learning.arms import Arm, Given, OtherWords, PlaceboLessons, PlaceboMemory, SeededWorld, Told, Widening
from learning.curve import Seen
from learning.families import Known
from learning.instrument import FactSensitive
from redstart.app.settings import Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.app.settings.store import find_tenant_folder
from redstart.app.wire import AppContext, create_trial_store, open_app, open_database
from redstart.core.change import EditKind
from redstart.core.errors import ConfigError
from redstart.core.run import Level, Limits, RunState
from redstart.evals.app import EvaluationRequest, build_plan, make_tenant_name, verify_all
from redstart.evals.grading import GradingBaseline
from redstart.evals.measurement import list_true_fixes
from redstart.evals.outcome import Results, RunKey, RunOutcome
from redstart.evals.runner import Evaluation
from redstart.evals.task_repo import TaskFolder
from redstart.evals.verify import TaskCheck, build_baselines
from redstart.ports.model.port import Model, Profile
from redstart.ports.sql.engine import Database
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.store import SqlStore
from redstart.ports.world.system import SystemWorld

ATTEMPTS = 3
INSTRUMENT = "instrument:fact-sensitive"
LOCAL = "openai:local"
Tell = Callable[[Arm, RunOutcome], None]


class Stream(NamedTuple):
    """The tasks that every arm runs, and how."""

    tasks: tuple[Known, ...]
    seed: int
    place: str
    """Where the instrument leaves the key fact: one of `PLACES`."""
    model: str = INSTRUMENT

    @property
    def is_instrument(self) -> bool:
        return self.model == INSTRUMENT

    def name(self, arm: Arm) -> str:
        return f"learning-{self.place if self.is_instrument else 'model'}-{self.seed}-{arm.value}"


def create_settings(home: Path, data: Path | None, url: str, context: int) -> Settings:
    """Make the settings for the instrument, or for a small model behind a chat completions endpoint."""
    if not url:
        return Settings(home=home, data=data, models=Models(strong=INSTRUMENT, fast=INSTRUMENT))
    profile = Profile(context=context, looks=0, brief=True, edits=EditKind.whole)
    models = Models(
        strong=LOCAL,
        fast=LOCAL,
        base_url=f"{url.rstrip('/')}/v1",
        deadline=1800,
        patience=3600,
        options={LOCAL: ModelOptions(max_tokens=500)},
        profiles={LOCAL: profile},
    )
    return Settings(home=home, data=data, models=models)


async def verify_tasks(settings: Settings, tasks: Sequence[Known]) -> dict[str, GradingBaseline]:
    """Run each task once and return its grading baseline. Raises `ConfigError` for an invalid task."""
    checks: dict[str, TaskCheck] = {}
    with open_app(settings) as app:
        async for item in verify_all(app.with_sandbox(), [entry.task for entry in tasks], repeats=1):
            if not item.ok:
                raise ConfigError(f"{item.task} is not a valid task on this machine: {item.why}")
            checks[item.digest] = item
            print(f"{item.task} fails, and passes with its fix", flush=True)
    return build_baselines(checks)


def load_rows(settings: Settings, stream: Stream) -> dict[Arm, list[RunOutcome]]:
    """Return the existing rows of each arm, in the order of the tasks."""
    place = {known.task.id: number for number, known in enumerate(stream.tasks)}
    rows_by_arm: dict[Arm, list[RunOutcome]] = {}
    with open_database(settings) as database:
        trials = create_trial_store(database.for_tenant(settings.tenant))
        for arm in Arm:
            known = stream.name(arm) in trials.list_evaluations()
            rows = Results(trials, stream.name(arm)).list_rows() if known else []
            rows_by_arm[arm] = sorted(rows, key=lambda row: place[row.key.task])
    return rows_by_arm


async def load_contexts(settings: Settings, stream: Stream, rows: dict[Arm, list[RunOutcome]]) -> dict[Arm, list[Seen]]:
    """Return what each run was shown, in the order of the tasks."""
    facts = {entry.task.id: entry.family.advice for entry in stream.tasks}
    contexts: dict[Arm, list[Seen]] = {}
    with open_database(settings) as database:
        for arm in Arm:
            arm_database = database.for_tenant(make_tenant_name(settings.tenant, stream.name(arm)))
            store = SqlStore(arm_database, SystemWorld().now)
            states = [(row, await store.load(row.run_id)) for row in rows[arm] if row.run_id]
            contexts[arm] = [_build_context(state, facts[row.key.task]) for row, state in states]
    return contexts


def _build_context(run: RunState, fact: str) -> Seen:
    lessons = [coin.advice for coin in run.taught.coins if coin.shown] if run.taught else []
    cards = [item.card.fix for item in run.now.plan.recalled] if run.now.plan else []
    return Seen(len(lessons), len(cards), any(fact in lesson for lesson in (*lessons, *cards)))


def do(settings: Settings, stream: Stream, arm: Arm, baselines: dict[str, GradingBaseline], on_outcome: Tell) -> None:
    """Run the remaining tasks of an arm; the placebo runs after `on`."""
    limits = Limits(attempts=ATTEMPTS, usd=None)
    tasks = [item.task for item in stream.tasks]
    # The tasks are stable, as their check showed: more repeats would cost hours and say nothing about memory.
    name, has_memory = stream.name(arm), arm is not Arm.off
    request = EvaluationRequest("learning", name=name, limits=limits, verify=Level.quick, has_memory=has_memory)
    plan = build_plan(request, tasks, stream.model)
    tenant = make_tenant_name(settings.tenant, plan.name)
    apart = settings.model_copy(update={"tenant": tenant})
    world = SeededWorld(settings.home / "ids" / plan.name, stream.seed)
    with open_database(settings) as database, open_app(apart, world=world, root_database=database) as base_app:
        results = Results.open(create_trial_store(database.for_tenant(settings.tenant)), plan)
        app = attach_memory(base_app.with_sandbox(), database.for_tenant(tenant), stream, arm)
        app = app if stream.is_instrument else app.with_model()
        doing = Evaluation(
            app,
            plan,
            tasks,
            results,
            find_tenant_folder(settings.home, tenant) / "work",
            model_for=_create_model_factory(app, stream, world),
            on_outcome=lambda row: on_outcome(arm, row),
            standards=baselines,
        )
        asyncio.run(doing.go(1))


def attach_memory(house: AppContext, database: Database, stream: Stream, arm: Arm) -> AppContext:
    """Return the app context with the memory of an arm; the plan of `off` removes its memory."""
    record = Given(house.settings.home / "given" / f"{stream.name(Arm.on)}.jsonl")
    adapters = house.adapters
    if arm is Arm.on:
        lessons = Widening(adapters.lessons, SqlLessonStore(database), adapters.world.now, record)
        adapters = replace(adapters, lessons=lessons, memory=Told(adapters.memory, record))
    if arm is Arm.placebo:
        other_words = OtherWords(stream.tasks)
        adapters = replace(
            adapters, lessons=PlaceboLessons(record, other_words), memory=PlaceboMemory(record, other_words)
        )
    return replace(house, adapters=adapters)


def _create_model_factory(
    house: AppContext, stream: Stream, world: SeededWorld
) -> Callable[[TaskFolder, RunKey], Model | None]:
    families = {item.task.id: item.family for item in stream.tasks}

    def create_model(site: TaskFolder, key: RunKey) -> Model | None:
        world.task = key.task
        if not stream.is_instrument:
            return None
        seed = f"{stream.seed}/{key}"
        return FactSensitive(list_true_fixes(house, site), families[key.task], seed=seed, place=stream.place)

    return create_model
