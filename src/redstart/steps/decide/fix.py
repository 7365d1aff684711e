"""Decide on a fix."""

from __future__ import annotations

from redstart.core.run import Decision, RunState
from redstart.ports.bundle import Ports
from redstart.steps.decide.ending import accept_passing_patch, decide_on_trouble, stop
from redstart.steps.decide.person import ask_about_patch, decide_with_person
from redstart.steps.decide.retry import change_course, retry


async def decide_fix(run: RunState, ports: Ports) -> Decision:
    if (decision := await decide_with_person(run, ports)) is not None:
        return decision
    if run.now.reproduce is not None and run.now.reproduce.trouble:
        return decide_on_trouble(run, run.now.reproduce)
    test_result = run.now.test
    if test_result is not None and test_result.verdict.is_green:
        return accept_passing_patch(run, test_result)
    if test_result is not None and test_result.verdict.asks:
        return ask_about_patch(run)
    return stop(run) or change_course(run, retry(run))
