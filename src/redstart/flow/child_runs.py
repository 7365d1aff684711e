"""Child runs. Pure: the same child task always gives the same run."""

from __future__ import annotations

from redstart.core.frozen import clip
from redstart.core.learning import Plan
from redstart.core.run import (
    RESULTS_WITH_PATCH,
    Attempt,
    ChildResult,
    ChildTask,
    Mode,
    Result,
    RunState,
    Spend,
    Status,
    Step,
)
from redstart.core.set_aside import SetAsidePolicy
from redstart.core.tasks import TASKS, CandidatePlan, Task
from redstart.flow.modes import MODES

MAX_SUMMARY_LENGTH = 200
CANDIDATE_TEMPERATURE = 0.6
"""The temperature of a candidate's first question: at 0, a model gives every candidate much the same answer."""


def make_child_run_id(parent: str, number: int) -> str:
    return f"{parent}.{number}"


def create_child_run(parent: RunState, child_task: ChildTask) -> RunState:
    """Create the initial state of a child run."""
    spec = parent.spec.model_copy(
        update={
            "task": _build_task(parent, child_task),
            "goal": child_task.title or parent.spec.goal,
            "base": child_task.base,
            "limits": child_task.limits,
            "seed": parent.spec.seed + child_task.number,
            "parent": parent.run_id,
            "errand": child_task.number,
        }
    )
    child = RunState(
        run_id=make_child_run_id(parent.run_id, child_task.number),
        spec=spec,
        base=child_task.base,
        now=Attempt(entry=MODES[child_task.mode][0]),
        installed=parent.installed,
        approved=parent.approved,
    )
    return child if parent.spec.candidates is None else _make_candidate(parent, child, parent.spec.candidates)


def _make_candidate(parent: RunState, child: RunState, plan: CandidatePlan) -> RunState:
    """Let a child run begin where its parent stands: with the failing tests that the parent has reproduced."""
    number, fast = child.spec.errand, plan.fast
    is_fast = fast is not None and number <= fast.count
    asks = fast.asks if fast is not None and is_fast else child.spec.asks
    first = fast.count + 1 if fast is not None and not is_fast else 1
    update = {
        "asks": asks.model_copy(update={"first_temperature": 0.0 if number == first else CANDIDATE_TEMPERATURE}),
        "looks": fast.looks if fast is not None and is_fast else child.spec.looks,
    }
    return child.model_copy(
        update={
            "spec": child.spec.model_copy(update=update),
            "base": parent.base,
            "now": Attempt(entry=Step.plan, reproduce=parent.now.reproduce),
            "set_aside": parent.set_aside,
        }
    )


def _build_task(parent: RunState, child_task: ChildTask) -> Task:
    """Build the child run's task: its own fields, and the rest from the parent if that has the same mode."""
    task = parent.spec.task if parent.spec.mode is child_task.mode else TASKS[child_task.mode]()
    changes: dict[Mode, dict[str, object]] = {
        # A candidate does not ask about tests that it sets aside: a person is asked about the patch that is taken.
        Mode.fix: {
            "candidates": None,
            "set_aside": SetAsidePolicy.alone
            if parent.spec.set_aside_policy is SetAsidePolicy.ask
            else parent.spec.set_aside_policy,
        },
        Mode.create: {"criteria": child_task.criteria, "whole": parent.spec.goal if child_task.place else ""},
        Mode.improve: {"before": parent.work.last, "proven": parent.work.kept > 0},
    }
    return task.model_copy(update=changes.get(child_task.mode, {}))


def get_child_result(child: RunState) -> ChildResult | None:
    """Return how the child run ended; None while it has not ended."""
    if child.status is not Status.finished:
        return None
    return ChildResult(
        number=child.spec.errand,
        result=child.result,
        reason=clip(child.reason, MAX_SUMMARY_LENGTH),
        about=clip(_describe_child(child), MAX_SUMMARY_LENGTH),
        made=child.now.made if child.result is Result.verified else None,
        spend=child.spend,
        installed=child.installed,
        approved=child.approved,
        attempt=_get_attempt(child),
        set_aside=child.set_aside,
    )


def get_stopped_result(child: RunState, spend: Spend) -> ChildResult:
    """Return the result of a child run that was stopped because another one was verified first."""
    return ChildResult(number=child.spec.errand, result=None, reason="stopped", spend=spend)


def _get_attempt(child: RunState) -> Attempt | None:
    """Return the last attempt of a candidate that ended with a patch, without the parts that its parent has."""
    if not child.spec.sibling_ids or child.result not in RESULTS_WITH_PATCH:
        return None
    return child.now.model_copy(update={"reproduce": None, "reflect": None, "remember": None, "decide": None})


def _describe_child(child: RunState) -> str:
    reproduction, plan = child.now.reproduce, child.now.plan or Plan()
    if child.spec.needs_new_test and reproduction is not None and reproduction.targets and not reproduction.tests:
        return "bug: the tests that were red already"
    return plan.summary or child.spec.goal
