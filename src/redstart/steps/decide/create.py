"""Decide on a new program: its parts are child runs, and its tests must detect small changes."""

from __future__ import annotations

from redstart.core.learning import Plan
from redstart.core.noun import many
from redstart.core.report import PatchTestResult
from redstart.core.run import Action, Decision, Result, RunState, Step
from redstart.ports.bundle import Ports
from redstart.steps.decide.child_runs import ended_child_runs, waits_for_child_runs, with_packages
from redstart.steps.decide.ending import accept, accept_green, can_ask_for_tests, end, stop, trouble_decision
from redstart.steps.decide.person import ask_about_patch, decide_with_person
from redstart.steps.decide.retry import again, retry, turned
from redstart.toolkit.errands import next_subtasks
from redstart.toolkit.installs.planned import with_planned_packages


async def decide_program(run: RunState, ports: Ports) -> Decision:
    plan, found, tested = run.now.plan, run.now.reproduce, run.now.test
    if run.last is Step.plan and plan is not None and plan.asks:
        return Decision(action=Action.ask, reason=plan.asks, result=Result.needs_human, next=Step.plan)
    if _is_done_in_parts(run):
        ended = await ended_child_runs(run, ports)
        parts = next_subtasks(with_planned_packages(run, ports), plan or Plan(), ended, ports.trees.merge)
        return with_packages(parts, ended)
    if (asked := await decide_with_person(run, ports)) is not None:
        return asked
    if found is not None and found.trouble and not can_ask_for_tests(run, found):
        return trouble_decision(run, found)
    if tested is not None and tested.verdict.honest_green:
        return _green(run, tested)
    if tested is not None and tested.verdict.asks:
        return ask_about_patch(run)
    return stop(run) or turned(run, retry(run))


def _is_done_in_parts(run: RunState) -> bool:
    """Return whether the plan's subtasks run as child runs, until all are done."""
    return not run.spec.errand and (waits_for_child_runs(run) or (run.splits and run.last is Step.plan))


def _green(run: RunState, judged: PatchTestResult) -> Decision:
    """Decide on passing tests. Tests that would not detect a broken program are rewritten unless they are the
    user's."""
    found = judged.mutants
    if found is None or run.foreign_language:
        return accept_green(run, judged)
    passed = judged.report.counts.passed
    noticed = f"{found.killed} of {found.sampled} small changes to the program"
    if not found.too_many_survive or not run.spec.task.writes_first_tests:
        said = f"{many(passed, 'test')} {'passes' if passed == 1 else 'pass'}"
        return accept(Result.verified, f"{said}; they notice {noticed}")
    weak = f"the tests notice only {noticed}"
    ended = stop(run)
    if ended is None:
        return again(Step.reproduce, f"{weak}; asking for better tests")
    is_capped = ended.result is Result.capped
    return end(Result.capped, f"{ended.reason}; {weak}") if is_capped else end(Result.unsolved, weak)
