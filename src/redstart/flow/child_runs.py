"""Child runs. Pure: the same child task always gives the same run."""

from __future__ import annotations

from redstart.core.frozen import clip
from redstart.core.learning import Plan
from redstart.core.run import Attempt, ChildResult, ChildTask, Mode, Result, RunState, Status
from redstart.core.tasks import TASKS, Task
from redstart.flow.modes import MODES

MAX_SUMMARY_LENGTH = 200


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
    return RunState(
        run_id=make_child_run_id(parent.run_id, child_task.number),
        spec=spec,
        base=child_task.base,
        now=Attempt(entry=MODES[child_task.mode][0]),
        installed=parent.installed,
        approved=parent.approved,
    )


def _build_task(parent: RunState, child_task: ChildTask) -> Task:
    """Build the child run's task: its own fields, and the rest from the parent if that has the same mode."""
    task = parent.spec.task if parent.spec.mode is child_task.mode else TASKS[child_task.mode]()
    changes: dict[Mode, dict[str, object]] = {
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
    )


def _describe_child(child: RunState) -> str:
    reproduction, plan = child.now.reproduce, child.now.plan or Plan()
    if child.spec.needs_new_test and reproduction is not None and reproduction.targets and not reproduction.tests:
        return "bug: the tests that were red already"
    return plan.summary or child.spec.goal
