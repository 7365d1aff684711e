"""Run an evaluation: each run in a sealed task folder, graded at its end, and continued after an interruption."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from redstart.app.run_status import list_child_ids
from redstart.app.runs import (
    CandidateRequest,
    RunRequest,
    choose_question_options,
    get_result_snapshot,
    go_on,
    keep_run,
    plan_candidates,
    resolve_max_tool_calls,
)
from redstart.app.wire import AppContext, load_engine
from redstart.core.errors import ConfigError, RedstartError, StoreError
from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.frozen import clip
from redstart.core.learning import RecalledCard, Signature
from redstart.core.lesson import Lesson, LessonOffer, LessonPlacement, Situation
from redstart.core.pattern import RecalledPattern
from redstart.core.run import GOAL_LIMIT, HINT_LIMIT, RunSpec, RunState, Spend
from redstart.core.tasks import FixTask
from redstart.evals.grading import Grade, Grader, GradingBaseline
from redstart.evals.measurement import GradedRun, build_outcome
from redstart.evals.outcome import EndPoint, EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.task import Task
from redstart.evals.task_repo import TaskFolder, open_site
from redstart.ports.memory.port import Lessons, Memory, Meter, Metered
from redstart.ports.model.port import Model

EXTRA_RECALLS = 20
"""Additional cards and patterns to recall, since those of the same task are dropped."""

ModelFor = Callable[[TaskFolder, RunKey], "Model | None"]
"""Returns the model of a run; None for the model of the settings."""


class EmptyMemory:
    """A memory that returns nothing."""

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        del signature, tenant, repo, limit
        return []

    async def recall_patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        del goal, tenant, repo, limit
        return []

    async def recall_failures(
        self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3
    ) -> list[RecalledFailure]:
        del query, tenant, repo, limit
        return []


class WithholdingMemory:
    """A memory that never returns what runs on the same repo saved."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        cards = await self._memory.recall(signature, tenant=tenant, repo=repo, limit=limit + EXTRA_RECALLS)
        return [item for item in cards if item.card.provenance.get("repo") != repo][:limit]

    async def recall_patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        found = await self._memory.recall_patterns(goal, tenant=tenant, repo=repo, limit=limit + EXTRA_RECALLS)
        return [item for item in found if item.pattern.provenance.get("repo") != repo][:limit]

    async def recall_failures(
        self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3
    ) -> list[RecalledFailure]:
        found = await self._memory.recall_failures(query, tenant=tenant, repo=repo, limit=limit + EXTRA_RECALLS)
        return [item for item in found if item.repo != repo][:limit]

    @property
    def asks(self) -> str:
        return self._memory.asks if isinstance(self._memory, Metered) else ""

    def with_meter(self, meter: Meter) -> WithholdingMemory:
        return WithholdingMemory(self._memory.with_meter(meter)) if isinstance(self._memory, Metered) else self


class NoLessons:
    """Lessons that are never offered nor stored."""

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        del situation
        return LessonOffer()

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        del lesson
        return LessonPlacement()


class OthersLessons:
    """Lessons that never include those of runs on the same repo."""

    def __init__(self, lessons: Lessons) -> None:
        self._lessons = lessons

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        offer = await self._lessons.offer_lessons(situation)
        lessons = tuple(lesson for lesson in offer.lessons if lesson.provenance.repo != situation.repo)
        return offer.model_copy(update={"lessons": lessons})

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        return await self._lessons.place_lesson(lesson)


class _Ended(NamedTuple):
    """A run that has ended and is not yet graded."""

    app: AppContext
    task_folder: TaskFolder
    state: RunState


def digest_tasks(tasks: Sequence[Task]) -> str:
    """Return a digest that is the same for the same tasks."""
    return hashlib.sha256("\n".join(task.digest for task in tasks).encode()).hexdigest()[:16]


@dataclass
class Evaluation:
    """One evaluation on one machine. `app` has a sandbox, and a model unless `model_for` gives one for every run.

    What its runs learn goes to the tenant of `app`, which nothing else should use.
    """

    app: AppContext
    plan: EvaluationPlan
    tasks: Sequence[Task]
    results: Results
    work: Path
    """The directory of the task folders. It must be the same when the evaluation continues."""
    model_for: ModelFor = lambda _site, _key: None
    on_outcome: Callable[[RunOutcome], None] = lambda _row: None
    standards: Mapping[str, GradingBaseline] = field(default_factory=dict[str, GradingBaseline])
    """Known baselines for grading, by task digest. Other tasks run once to measure theirs."""

    def __post_init__(self) -> None:
        if digest_tasks(self.tasks) != self.plan.tasks:
            raise ConfigError("the tasks differ from those of the plan")
        adapters = self.app.adapters
        if self.plan.remembers:
            lessons = OthersLessons(adapters.lessons)
            adapters = replace(adapters, memory=WithholdingMemory(adapters.memory), lessons=lessons)
        else:
            # Statistics of applied edits are kept per model name: without a name, runs do not share them.
            adapters = replace(adapters, memory=EmptyMemory(), lessons=NoLessons(), writer="")
        self.app = replace(self.app, adapters=adapters)
        self._grader = Grader(self.app, self.standards)
        self._sites: dict[str, TaskFolder] = {}
        self._by_id = {task.id: task for task in self.tasks}
        self._started_runs = self.results.get_run_ids()

    def list_remaining(self) -> list[RunKey]:
        """List the runs that are still to do, including broken ones."""
        finished = {row.key for row in self.results.list_rows() if row.place is not EndPoint.broken}
        return [key for key in self.plan.list_run_keys(list(self._by_id)) if key not in finished]

    async def go(self, parallel: int = 1) -> None:
        """Do the remaining runs, several in parallel. Each worker grades its last run during its next one.

        Broken machinery becomes a row. Raises if a row cannot be stored.
        """
        waiting = iter(self.list_remaining())

        async def run_worker() -> None:
            grading: asyncio.Task[RunOutcome] | None = None
            try:
                for key in waiting:
                    result = await self._drive_run(key)
                    if grading is not None:
                        await grading
                    grading = asyncio.create_task(self._keep(key, result))
                if grading is not None:
                    await grading
            finally:
                if grading is not None:
                    grading.cancel()
                    await asyncio.wait((grading,))

        await asyncio.gather(*(run_worker() for _ in range(parallel)))

    async def play(self, key: RunKey) -> RunOutcome:
        """Do one run, grade it and store its row. A run that was started before continues."""
        return await self._keep(key, await self._drive_run(key))

    async def load_spend(self) -> dict[RunKey, Spend]:
        """Load what each started run has spent so far, finished or not, with the time that its grading took."""
        rows = {row.key: row for row in self.results.list_rows() if row.place is not EndPoint.broken}
        spent = {key: Spend(usd=row.usd, seconds=row.seconds + row.graded_in) for key, row in rows.items()}
        for key in self._started_runs.keys() - rows.keys():
            with suppress(StoreError):  # the run was pruned
                spent[key] = (await self.app.adapters.store.load(self._started_runs[key])).spend
        return spent

    async def _keep(self, key: RunKey, result: _Ended | RunOutcome) -> RunOutcome:
        row = await self._grade_run(key, result) if isinstance(result, _Ended) else result
        self.results.add(row)
        self.on_outcome(row)
        return row

    def _make_broken_row(self, key: RunKey, error: RedstartError) -> RunOutcome:
        return RunOutcome(
            key=key, run_id=self._started_runs.get(key, ""), place=EndPoint.broken, trouble=clip(str(error), 600)
        )

    async def _drive_run(self, key: RunKey) -> _Ended | RunOutcome:
        """Drive the run of this key to its end. Return the row of a run that broke."""
        try:
            task_folder = self._open_task_folder(key.task)
            model = self.model_for(task_folder, key)
            app = self.app.with_model(model) if model is not None else self.app
            run_id = await self._get_or_start_run(app, task_folder, key)
            return _Ended(app, task_folder, (await go_on(app, run_id, load_engine(self.plan.engine))).state)
        except RedstartError as error:
            return self._make_broken_row(key, error)

    async def _grade_run(self, key: RunKey, ended_run: _Ended) -> RunOutcome:
        app, task_folder, state = ended_run
        patched, clock = get_result_snapshot(state), app.adapters.world.monotonic
        began = clock()
        try:
            grade = await self._grader.grade(task_folder, patched) if patched is not None else None
            covered = await self._is_any_candidate_right(ended_run, grade) if state.spec.candidates else None
            seconds = round(clock() - began, 3)
            runs = (state.run_id, *(await list_child_ids(app, state) if state.spec.candidates else ()))
            steps = [row for run_id in runs for row in await app.adapters.store.list_steps(run_id)]
            return build_outcome(app, task_folder, key, GradedRun(state, steps, grade, seconds, covered))
        except RedstartError as error:
            return self._make_broken_row(key, error)

    async def _is_any_candidate_right(self, ended_run: _Ended, grade: Grade | None) -> bool:
        """Return whether the hidden tests pass with the chosen patch, or with that of any other candidate."""
        app, task_folder, state = ended_run
        if grade is not None and grade.solved:
            return True
        graded = get_result_snapshot(state)
        trees = {graded.tree} if graded else set[str]()
        for run_id in await list_child_ids(app, state):
            patched = get_result_snapshot(await app.adapters.store.load(run_id))
            if patched is None or patched.tree in trees:
                continue
            trees.add(patched.tree)
            if (await self._grader.grade(task_folder, patched)).solved:
                return True
        return False

    async def _get_or_start_run(self, app: AppContext, task_folder: TaskFolder, key: RunKey) -> str:
        """Return the run that was started for this key before a crash, or start a new one."""
        run_id = self._started_runs.get(key, "")
        if run_id:
            try:
                await app.adapters.store.load(run_id)
            except StoreError:
                run_id = ""
        if not run_id:
            run_id = (await keep_run(app, self._build_spec(task_folder, key), folder=task_folder.folder)).run_id
            self.results.record_start(key, run_id)
            self._started_runs[key] = run_id
        return run_id

    def _build_spec(self, task_folder: TaskFolder, key: RunKey) -> RunSpec:
        plan, settings, task = self.plan, self.app.settings, task_folder.task
        issue = "" if task.shows_red else clip(task.goal, GOAL_LIMIT)
        candidates = CandidateRequest(plan.candidates, plan.escalate, plan.choose)
        request = RunRequest(plan.limits, max_tool_calls=plan.looks, candidates=candidates)
        update = {
            "task": FixTask(issue=bool(issue), candidates=plan_candidates(self.app, request)),
            "goal": issue,
            "hint": clip(task.goal, HINT_LIMIT) if task.shows_red else "",
            "limits": plan.limits,
            "verify": plan.verify,
            "looks": resolve_max_tool_calls(self.app, request),
            "reflect": settings.reflect,
            "asks": choose_question_options(self.app, request),
            "keeps_gain": True,
            "checks": settings.checks.checks,
            "seed": key.seed * 1000 + key.run,
            "tenant": settings.tenant,
        }
        return task_folder.spec.model_copy(update=update)

    def _open_task_folder(self, name: str) -> TaskFolder:
        if name not in self._sites:
            task = self._by_id[name]
            self._sites[name] = open_site(self.app, task, self.work / task.slug)
        return self._sites[name]
