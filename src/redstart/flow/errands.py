"""A run that another one begins. Pure: the same errand is the same run, however often it is begun."""

from __future__ import annotations

from redstart.core.learning import Plan
from redstart.core.noun import clip
from redstart.core.run import Attempt, Ended, Errand, Mode, Result, RunState, Status
from redstart.flow.modes import MODES

ABOUT = 200


def errand_id(parent: str, number: int) -> str:
    return f"{parent}.{number}"


def begun(parent: RunState, errand: Errand) -> RunState:
    """The errand's run at its beginning."""
    spec = parent.spec.model_copy(
        update={
            "mode": errand.mode,
            "goal": errand.title or parent.spec.goal,
            "criteria": errand.criteria,
            "whole": parent.spec.goal if errand.place else "",
            "base": errand.base,
            "limits": errand.limits,
            "seed": parent.spec.seed + errand.number,
            "targets": (),
            "keyword": "",
            "parent": parent.run_id,
            "errand": errand.number,
            "before": parent.work.last,
            "proven": parent.spec.mode is Mode.improve and parent.work.kept > 0,
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


def ended(child: RunState) -> Ended | None:
    """How the errand's run ended; None while it has not."""
    if child.status is not Status.finished:
        return None
    return Ended(
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
    if child.spec.mode is Mode.improve and found is not None and found.targets and not found.tests:
        return "bug: the tests that were red already"
    return plan.summary or child.spec.goal
