"""Run an evaluation: each run in a sealed task folder, graded at its end, and continued after an interruption."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from redstart.app.runs import RunRequest, go_on, keep_run, looks_of, result_snapshot
from redstart.app.wire import AppContext, asking, engine_called
from redstart.core.errors import ConfigError, RedstartError, StoreError
from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.learning import RecalledCard, Signature
from redstart.core.lesson import Lesson, LessonOffer, LessonPlacement, Situation
from redstart.core.noun import clip
from redstart.core.pattern import RecalledPattern
from redstart.core.run import GOAL_LIMIT, HINT_LIMIT, RunSpec, RunState
from redstart.core.tasks import FixTask
from redstart.evals.grading import Grader, GradingBaseline
from redstart.evals.measure import GradedRun, outcome_of
from redstart.evals.outcome import EndPoint, EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.sealed import TaskFolder, open_site
from redstart.evals.task import Task
from redstart.ports.memory.port import Lessons, Memory, Meter, Metered
from redstart.ports.model.port import Model

MORE = 20
"""Additional cards and patterns to recall, since those of the same task are dropped."""

ModelFor = Callable[[TaskFolder, RunKey], "Model | None"]
"""Returns the model of a run; None for the model of the settings."""


class EmptyMemory:
    """A memory that returns nothing."""

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        del signature, tenant, repo, limit
        return []

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        del goal, tenant, repo, limit
        return []

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        del query, tenant, repo, limit
        return []


class WithholdingMemory:
    """A memory that never returns what runs on the same repo saved."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        found = await self._memory.recall(signature, tenant=tenant, repo=repo, limit=limit + MORE)
        return [item for item in found if item.card.provenance.get("repo") != repo][:limit]

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        found = await self._memory.patterns(goal, tenant=tenant, repo=repo, limit=limit + MORE)
        return [item for item in found if item.pattern.provenance.get("repo") != repo][:limit]

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        found = await self._memory.failures(query, tenant=tenant, repo=repo, limit=limit + MORE)
        return [item for item in found if item.repo != repo][:limit]

    @property
    def asks(self) -> str:
        return self._memory.asks if isinstance(self._memory, Metered) else ""

    def under(self, meter: Meter) -> WithholdingMemory:
        return WithholdingMemory(self._memory.under(meter)) if isinstance(self._memory, Metered) else self


class NoLessons:
    """Lessons that are never offered nor stored."""

    async def offered(self, situation: Situation) -> LessonOffer:
        del situation
        return LessonOffer()

    async def placed(self, lesson: Lesson) -> LessonPlacement:
        del lesson
        return LessonPlacement()


class OthersLessons:
    """Lessons that never include those of runs on the same repo."""

    def __init__(self, lessons: Lessons) -> None:
        self._lessons = lessons

    async def offered(self, situation: Situation) -> LessonOffer:
        found = await self._lessons.offered(situation)
        kept = tuple(lesson for lesson in found.lessons if lesson.provenance.repo != situation.repo)
        return found.model_copy(update={"lessons": kept})

    async def placed(self, lesson: Lesson) -> LessonPlacement:
        return await self._lessons.placed(lesson)


class _Ended(NamedTuple):
    """A run that has ended and is not yet graded."""

    house: AppContext
    site: TaskFolder
    state: RunState


def digest_of(tasks: Sequence[Task]) -> str:
    """Return a digest that is the same for the same tasks."""
    return hashlib.sha256("\n".join(task.digest for task in tasks).encode()).hexdigest()[:16]


@dataclass
class Evaluation:
    """One evaluation on one machine. `house` has a sandbox, and a model unless `model_for` gives one for every run.

    What its runs learn goes to the tenant of `house`, which nothing else should use.
    """

    house: AppContext
    plan: EvaluationPlan
    tasks: Sequence[Task]
    results: Results
    work: Path
    """The directory of the task folders. It must be the same when the evaluation continues."""
    model_for: ModelFor = lambda _site, _key: None
    tell: Callable[[RunOutcome], None] = lambda _row: None
    standards: Mapping[str, GradingBaseline] = field(default_factory=dict[str, GradingBaseline])
    """Known baselines for grading, by task digest. Other tasks run once to measure theirs."""

    def __post_init__(self) -> None:
        if digest_of(self.tasks) != self.plan.tasks:
            raise ConfigError("the tasks differ from those of the plan")
        adapters = self.house.adapters
        if self.plan.remembers:
            others = OthersLessons(adapters.lessons)
            adapters = replace(adapters, memory=WithholdingMemory(adapters.memory), lessons=others)
        else:
            # Statistics of applied edits are kept per model name: without a name, runs do not share them.
            adapters = replace(adapters, memory=EmptyMemory(), lessons=NoLessons(), writer="")
        self.house = replace(self.house, adapters=adapters)
        self._grader = Grader(self.house, self.standards)
        self._sites: dict[str, TaskFolder] = {}
        self._by_id = {task.id: task for task in self.tasks}
        self._begun = self.results.begun()

    def left(self) -> list[RunKey]:
        """List the runs that are still to do, including broken ones."""
        done = {row.key for row in self.results.rows() if row.place is not EndPoint.broken}
        return [key for key in self.plan.keys(list(self._by_id)) if key not in done]

    async def go(self, parallel: int = 1) -> None:
        """Do the remaining runs, several in parallel. Each worker grades its last run during its next one.

        Broken machinery becomes a row. Raises if a row cannot be stored.
        """
        waiting = iter(self.left())

        async def worker() -> None:
            grading: asyncio.Task[None] | None = None
            try:
                for key in waiting:
                    ended = await self._ended(key)
                    if grading is not None:
                        await grading
                    grading = asyncio.create_task(self._keep(key, ended))
                if grading is not None:
                    await grading
            finally:
                if grading is not None:
                    grading.cancel()
                    await asyncio.wait((grading,))

        await asyncio.gather(*(worker() for _ in range(parallel)))

    async def _keep(self, key: RunKey, ended: _Ended | RunOutcome) -> None:
        row = await self._graded(key, ended) if isinstance(ended, _Ended) else ended
        self.results.add(row)
        self.tell(row)

    def _broken(self, key: RunKey, error: RedstartError) -> RunOutcome:
        return RunOutcome(
            key=key, run_id=self._begun.get(key, ""), place=EndPoint.broken, trouble=clip(str(error), 600)
        )

    async def _ended(self, key: RunKey) -> _Ended | RunOutcome:
        """Drive the run of this key to its end. Return the row of a run that broke."""
        try:
            site = self._site(key.task)
            model = self.model_for(site, key)
            house = self.house.with_model(model) if model is not None else self.house
            run_id = await self._run_of(house, site, key)
            return _Ended(house, site, (await go_on(house, run_id, engine_called(self.plan.engine))).state)
        except RedstartError as error:
            return self._broken(key, error)

    async def _graded(self, key: RunKey, ended: _Ended) -> RunOutcome:
        house, site, state = ended
        made, clock = result_snapshot(state), house.adapters.world.monotonic
        began = clock()
        try:
            grade = await self._grader.grade(site, made) if made is not None else None
            took = round(clock() - began, 3)
            steps = await house.adapters.store.steps(state.run_id)
            return outcome_of(house, site, key, GradedRun(state, steps, grade, took))
        except RedstartError as error:
            return self._broken(key, error)

    async def _run_of(self, house: AppContext, site: TaskFolder, key: RunKey) -> str:
        """Return the run that was started for this key before a crash, or start a new one."""
        known = self._begun.get(key, "")
        if known:
            try:
                await house.adapters.store.load(known)
            except StoreError:
                known = ""
        if not known:
            known = (await keep_run(house, self._spec(site, key), folder=site.folder)).run_id
            self.results.begin(key, known)
            self._begun[key] = known
        return known

    def _spec(self, site: TaskFolder, key: RunKey) -> RunSpec:
        plan, settings, task = self.plan, self.house.settings, site.task
        issue = "" if task.shows_red else clip(task.goal, GOAL_LIMIT)
        update = {
            "task": FixTask(issue=bool(issue)),
            "goal": issue,
            "hint": clip(task.goal, HINT_LIMIT) if task.shows_red else "",
            "limits": plan.limits,
            "verify": plan.verify,
            "looks": looks_of(self.house, RunRequest(plan.limits, looks=plan.looks)),
            "reflect": settings.reflect,
            "asks": asking(settings),
            "checks": settings.checks.checks,
            "seed": key.seed * 1000 + key.run,
            "tenant": settings.tenant,
        }
        return site.spec.model_copy(update=update)

    def _site(self, name: str) -> TaskFolder:
        if name not in self._sites:
            task = self._by_id[name]
            self._sites[name] = open_site(self.house, task, self.work / task.slug)
        return self._sites[name]
