"""Decide on a fix."""

from __future__ import annotations

from redstart.core.run import Decision, RunState
from redstart.ports.bundle import Ports
from redstart.steps.decide.ending import accept_green, stop, trouble_decision
from redstart.steps.decide.person import ask_about_patch, decide_with_person
from redstart.steps.decide.retry import retry, turned


async def decide_fix(run: RunState, ports: Ports) -> Decision:
    if (asked := await decide_with_person(run, ports)) is not None:
        return asked
    if run.now.reproduce is not None and run.now.reproduce.trouble:
        return trouble_decision(run, run.now.reproduce)
    tested = run.now.test
    if tested is not None and tested.verdict.honest_green:
        return accept_green(run, tested)
    if tested is not None and tested.verdict.asks:
        return ask_about_patch(run)
    return stop(run) or turned(run, retry(run))
