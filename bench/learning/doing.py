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
from redstart.app.settings.store import folder_of
from redstart.app.wire import AppContext, open_database, open_house, trials_of
from redstart.core.change import EditKind
from redstart.core.errors import ConfigError
from redstart.core.run import Level, Limits, RunState
from redstart.evals.desk import EvaluationRequest, plan_of, tenant_of, verify_all
from redstart.evals.grading import GradingBaseline
from redstart.evals.measure import true_fixes
from redstart.evals.outcome import Results, RunKey, RunOutcome
from redstart.evals.runner import Evaluation
from redstart.evals.sealed import TaskFolder
from redstart.evals.verify import TaskCheck, standards
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


def settings_for(home: Path, data: Path | None, url: str, context: int) -> Settings:
    """Make the settings for the instrument, or for a small model behind a chat completions endpoint."""
    if not url:
        return Settings(home=home, data=data, models=Models(strong=INSTRUMENT, fast=INSTRUMENT))
    known = Profile(context=context, looks=0, brief=True, edits=EditKind.whole)
    models = Models(
        strong=LOCAL,
        fast=LOCAL,
        base_url=f"{url.rstrip('/')}/v1",
        deadline=1800,
        patience=3600,
        options={LOCAL: ModelOptions(max_tokens=500)},
        profiles={LOCAL: known},
    )
    return Settings(home=home, data=data, models=models)


async def verified(settings: Settings, tasks: Sequence[Known]) -> dict[str, GradingBaseline]:
    """Run each task once and return its grading baseline. Raises `ConfigError` for an invalid task."""
    found: dict[str, TaskCheck] = {}
    with open_house(settings) as house:
        async for item in verify_all(house.with_sandbox(), [known.task for known in tasks], repeats=1):
            if not item.ok:
                raise ConfigError(f"{item.task} is not a valid task on this machine: {item.why}")
            found[item.digest] = item
            print(f"{item.task} fails, and passes with its fix", flush=True)
    return standards(found)


def done(settings: Settings, stream: Stream) -> dict[Arm, list[RunOutcome]]:
    """Return the existing rows of each arm, in the order of the tasks."""
    place = {known.task.id: number for number, known in enumerate(stream.tasks)}
    found: dict[Arm, list[RunOutcome]] = {}
    with open_database(settings) as database:
        trials = trials_of(database.of(settings.tenant))
        for arm in Arm:
            known = stream.name(arm) in trials.evaluations()
            rows = Results(trials, stream.name(arm)).rows() if known else []
            found[arm] = sorted(rows, key=lambda row: place[row.key.task])
    return found


async def seen(settings: Settings, stream: Stream, rows: dict[Arm, list[RunOutcome]]) -> dict[Arm, list[Seen]]:
    """Return what each run was shown, in the order of the tasks."""
    facts = {known.task.id: known.family.advice for known in stream.tasks}
    found: dict[Arm, list[Seen]] = {}
    with open_database(settings) as database:
        for arm in Arm:
            mine = database.of(tenant_of(settings.tenant, stream.name(arm)))
            store = SqlStore(mine, SystemWorld().now)
            states = [(row, await store.load(row.run_id)) for row in rows[arm] if row.run_id]
            found[arm] = [_seen(state, facts[row.key.task]) for row, state in states]
    return found


def _seen(run: RunState, fact: str) -> Seen:
    lessons = [coin.advice for coin in run.taught.coins if coin.shown] if run.taught else []
    cards = [item.card.fix for item in run.now.plan.recalled] if run.now.plan else []
    return Seen(len(lessons), len(cards), any(fact in lesson for lesson in (*lessons, *cards)))


def do(settings: Settings, stream: Stream, arm: Arm, known: dict[str, GradingBaseline], tell: Tell) -> None:
    """Run the remaining tasks of an arm; the placebo runs after `on`."""
    limits = Limits(attempts=ATTEMPTS, usd=None)
    tasks = [item.task for item in stream.tasks]
    # The tasks are stable, as their check showed: more repeats would cost hours and say nothing about memory.
    name, remembers = stream.name(arm), arm is not Arm.off
    wanted = EvaluationRequest("learning", name=name, limits=limits, verify=Level.quick, remembers=remembers)
    plan = plan_of(wanted, tasks, stream.model)
    tenant = tenant_of(settings.tenant, plan.name)
    apart = settings.model_copy(update={"tenant": tenant})
    world = SeededWorld(settings.home / "ids" / plan.name, stream.seed)
    with open_database(settings) as database, open_house(apart, world=world, opened=database) as bare:
        results = Results.open(trials_of(database.of(settings.tenant)), plan)
        house = remembering(bare.with_sandbox(), database.of(tenant), stream, arm)
        house = house if stream.is_instrument else house.with_model()
        doing = Evaluation(
            house,
            plan,
            tasks,
            results,
            folder_of(settings.home, tenant) / "work",
            model_for=_model_for(house, stream, world),
            tell=lambda row: tell(arm, row),
            standards=known,
        )
        asyncio.run(doing.go(1))


def remembering(house: AppContext, database: Database, stream: Stream, arm: Arm) -> AppContext:
    """Return the app context with the memory of an arm; the plan of `off` removes its memory."""
    given = Given(house.settings.home / "given" / f"{stream.name(Arm.on)}.jsonl")
    adapters = house.adapters
    if arm is Arm.on:
        lessons = Widening(adapters.lessons, SqlLessonStore(database), adapters.world.now, given)
        adapters = replace(adapters, lessons=lessons, memory=Told(adapters.memory, given))
    if arm is Arm.placebo:
        words = OtherWords(stream.tasks)
        adapters = replace(adapters, lessons=PlaceboLessons(given, words), memory=PlaceboMemory(given, words))
    return replace(house, adapters=adapters)


def _model_for(house: AppContext, stream: Stream, world: SeededWorld) -> Callable[[TaskFolder, RunKey], Model | None]:
    families = {item.task.id: item.family for item in stream.tasks}

    def model_for(site: TaskFolder, key: RunKey) -> Model | None:
        world.task = key.task
        if not stream.is_instrument:
            return None
        seed = f"{stream.seed}/{key}"
        return FactSensitive(true_fixes(house, site), families[key.task], seed=seed, place=stream.place)

    return model_for
