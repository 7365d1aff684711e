"""Show what a run did, for people and scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from redstart.app.run_status import load_all_records
from redstart.app.wire import AppContext
from redstart.core.change import ApplyResult, Patch
from redstart.core.chat import Answer
from redstart.core.errors import BlobMissing, ConfigError
from redstart.core.events import Phase
from redstart.core.frozen import FrozenValue
from redstart.core.learning import Reflection
from redstart.core.report import Case, CaseList, PatchTestResult, ReproductionResult
from redstart.core.run import Decision, RunState, Step
from redstart.core.tasks import with_flat_names
from redstart.engines.journal import KeptAnswer
from redstart.engines.recall import read_metered_recall
from redstart.ports.model.prices import ModelShare, list_model_shares
from redstart.ports.store.port.runs import StepRow


def collect_reflections(rows: Sequence[StepRow]) -> dict[int, Reflection]:
    """Collect the reflection on each attempt by number, from the step `reflect`, else from the next attempt's
    answer."""
    reflections: dict[int, Reflection] = {}
    last_attempt = 0
    for row in rows:
        if row.step is Step.reflect:
            reflection = Reflection.model_validate_json(row.artifact)
            if reflection.explains:
                reflections[row.attempt] = reflection
        elif row.step is Step.patch:
            patch = Patch.model_validate_json(row.artifact)
            if last_attempt and patch.reflection is not None:
                reflections.setdefault(last_attempt, patch.reflection)
            last_attempt = last_attempt if patch.probe else row.attempt
    return reflections


def reflection_lines(reflection: Reflection | None) -> Iterator[str]:
    """Yield one line for each part that is not empty."""
    if reflection is not None:
        parts = {
            "root cause": reflection.root_cause,
            "what failed": reflection.what_failed,
            "try next": reflection.try_next,
        }
        yield from (f"{name}: {text}" for name, text in parts.items() if text)


VIEW_VERSION = 1
REMOVED_TEXT = "[no longer kept]"
"""Replaces text that was forgotten together with a card that contained it."""

T = TypeVar("T", bound=FrozenValue)


class StepView(FrozenValue):
    step: str
    seconds: float
    artifact: dict[str, object]


class AttemptView(FrozenValue):
    """Everything about one attempt, including a refused one."""

    v: int = VIEW_VERSION
    run: str
    number: int
    why: str = ""
    answer: str = ""
    """The model's answer."""
    diff: str = ""
    rejects: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    """The failing tests of its own test run, else of the baseline, with expected and actual values."""
    output: str = ""
    """The output of the test runner."""
    steps: tuple[StepView, ...] = ()
    outcome: str = ""
    reflection: Reflection | None = None
    """The model's explanation of the failure; None if no model was asked."""
    failed_before: tuple[str, ...] = ()
    """Failed attempts of earlier runs that its question showed, as RUN-ATTEMPT."""


async def load_attempt_view(app: AppContext, state: RunState, number: int) -> AttemptView:
    """Load everything about one attempt. Raises `ConfigError` if the run has no such attempt."""
    all_rows = await app.adapters.store.list_steps(state.run_id)
    rows = [row for row in all_rows if row.attempt == number]
    if not rows:
        raise ConfigError(f"run {state.run_id} has no attempt {number}", remedy=f"it has 1 to {state.now.number}")
    seconds = await _load_seconds(app, state.run_id, number)
    patch = _find_artifact(rows, Step.patch, Patch)
    applied = _find_artifact(rows, Step.apply, ApplyResult)
    test_result = _find_artifact(rows, Step.test, PatchTestResult)
    reproduced = _find_artifact(rows, Step.reproduce, ReproductionResult)
    report = test_result.report if test_result else reproduced.report if reproduced else None
    text = _Texts(app)
    return AttemptView(
        run=state.run_id,
        number=number,
        why=patch.why if patch else "",
        answer=text(patch.answer) if patch else "",
        diff=text(applied.diff) if applied else "",
        rejects=tuple(f"{reject.path}: {reject.reason}" for reject in applied.rejects) if applied else (),
        cases=tuple(case for case in _load_cases(app, report.full) if case.is_red) if report else (),
        output=text(report.output) if report else "",
        steps=tuple(_step(row, seconds) for row in rows),
        outcome=_find_outcome(rows),
        reflection=collect_reflections(all_rows).get(number),
        failed_before=patch.failed_before if patch else (),
    )


def build_state_document(state: RunState) -> dict[str, Any]:
    """Return the state as JSON for programs. Fields of a single mode also appear at the top level of the spec."""
    document = state.model_dump(mode="json")
    return {**document, "spec": with_flat_names(document["spec"], state.spec.task)}


def load_final_diff(app: AppContext, state: RunState) -> str:
    """Return the diff of the last attempt that made one; for `improve`, the diff of all improvements that were kept."""
    if state.spec.has_cycles:
        snapshot = state.draft if state.work.kept else None
        return app.trees.diff(state.spec.base, snapshot).decode(errors="replace") if snapshot else ""
    return _Texts(app)(state.now.diff)


class _Texts:
    def __init__(self, app: AppContext) -> None:
        self._blobs = app.adapters.blobs

    def __call__(self, name: str) -> str:
        try:
            return self._blobs.get(name).decode(errors="replace") if name else ""
        except BlobMissing:
            return REMOVED_TEXT


def _load_cases(app: AppContext, full: str) -> tuple[Case, ...]:
    return CaseList.model_validate_json(app.adapters.blobs.get(full)).cases if full else ()


def _find_artifact(rows: list[StepRow], step: Step, shape: type[T]) -> T | None:
    return next((shape.model_validate_json(row.artifact) for row in rows if row.step is step), None)


async def _load_seconds(app: AppContext, run_id: str, number: int) -> dict[str, float]:
    end_events = (event for event in await app.adapters.store.list_events(run_id) if event.phase is Phase.end)
    attempt_events = (event for event in end_events if event.attempt == number)
    return {event.name: seconds for event in attempt_events if isinstance(seconds := event.data.get("seconds"), float)}


def _step(row: StepRow, seconds: dict[str, float]) -> StepView:
    return StepView(step=row.step.value, seconds=seconds.get(row.step.value, 0.0), artifact=json.loads(row.artifact))


def _find_outcome(rows: list[StepRow]) -> str:
    decision = _find_artifact(rows, Step.decide, Decision)
    return decision.reason if decision else f"paused after {rows[-1].step.value}"


async def summarize_spending(app: AppContext, state: RunState) -> list[ModelShare]:
    """Summarize the calls and the cost of each model of the run and its child runs."""
    records = await load_all_records(app, state)
    answers = [KeptAnswer.from_record(record).answer for record in records if record.kind == "model"]
    recalls = [read_metered_recall(record) for record in records if record.kind == "recall"]
    return list_model_shares(
        [
            *answers,
            *(Answer(text="", model=recall.model, usage=recall.usage) for recall in recalls if recall and recall.usage),
        ]
    )
