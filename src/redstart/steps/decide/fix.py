"""Decide on a fix."""

from __future__ import annotations

from redstart.core.run import Decision, RunState
from redstart.ports.bundle import Ports
from redstart.steps.decide.candidates import decide_on_candidates
from redstart.steps.decide.ending import decide_on_trouble, stop
from redstart.steps.decide.kept_part import settle_for_part
from redstart.steps.decide.person import ask_about_patch, decide_with_person
from redstart.steps.decide.retry import change_course, retry
from redstart.steps.decide.set_aside import accept_partly, decide_on_claim, get_lone_claim, with_restored_targets


async def decide_fix(run: RunState, ports: Ports) -> Decision:
    if run.spec.candidates is not None:
        return await decide_on_candidates(run, ports, run.spec.candidates)
    if (decision := await decide_with_person(run, ports)) is not None:
        return decision
    if run.now.reproduce is not None and run.now.reproduce.trouble:
        return decide_on_trouble(run, run.now.reproduce)
    if claim := get_lone_claim(run):
        return decide_on_claim(run, ports, claim)
    test_result = run.now.test
    if test_result is not None and test_result.verdict.is_green:
        return accept_partly(run, test_result)
    if test_result is not None and test_result.verdict.asks:
        return ask_about_patch(run)
    if ending := stop(run):
        return settle_for_part(run, ports, ending)
    return with_restored_targets(run, ports, change_course(run, retry(run)))
