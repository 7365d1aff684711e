"""Child runs. Pure: the same child task gives the same run, however often it is begun."""

from __future__ import annotations

from redstart.core.learning import Plan
from redstart.core.noun import clip
from redstart.core.run import Attempt, ChildResult, ChildTask, Mode, Result, RunState, Status
from redstart.core.tasks import TASKS, Task
from redstart.flow.modes import MODES

ABOUT = 200


def errand_id(parent: str, number: int) -> str:
    return f"{parent}.{number}"


def begun(parent: RunState, errand: ChildTask) -> RunState:
    """Create the initial state of a child run."""
    spec = parent.spec.model_copy(
        update={
            "task": _task(parent, errand),
            "goal": errand.title or parent.spec.goal,
            "base": errand.base,
            "limits": errand.limits,
            "seed": parent.spec.seed + errand.number,
            "parent": parent.run_id,
            "errand": errand.number,
        }
    )
    return RunState(
        run_id=errand_id(parent.run_id, errand.number),
        spec=spec,
        base=errand.base,
        now=Attempt(entry=MODES[errand.mode][0]),
        installed=parent.installed,
        approved=parent.approved,
    )


def _task(parent: RunState, errand: ChildTask) -> Task:
    """Build the child run's task: its own fields, and the rest from the parent if that has the same mode."""
    own = parent.spec.task if parent.spec.mode is errand.mode else TASKS[errand.mode]()
    changes: dict[Mode, dict[str, object]] = {
        Mode.create: {"criteria": errand.criteria, "whole": parent.spec.goal if errand.place else ""},
        Mode.improve: {"before": parent.work.last, "proven": parent.work.kept > 0},
    }
    return own.model_copy(update=changes.get(errand.mode, {}))


def ended(child: RunState) -> ChildResult | None:
    """Return how the child run ended; None while it has not ended."""
    if child.status is not Status.finished:
        return None
    return ChildResult(
        number=child.spec.errand,
        result=child.result,
        reason=clip(child.reason, ABOUT),
        about=clip(_about(child), ABOUT),
        made=child.now.made if child.result is Result.verified else None,
        spend=child.spend,
        installed=child.installed,
        approved=child.approved,
    )


def _about(child: RunState) -> str:
    found, plan = child.now.reproduce, child.now.plan or Plan()
    if child.spec.lacks_test and found is not None and found.targets and not found.tests:
        return "bug: the tests that were red already"
    return plan.summary or child.spec.goal
