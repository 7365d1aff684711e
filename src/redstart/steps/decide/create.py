"""Decide on a new program: its parts are child runs, and its tests must detect small changes."""

from __future__ import annotations

from redstart.core.frozen import format_count
from redstart.core.learning import Plan
from redstart.core.report import PatchTestResult
from redstart.core.run import Action, Decision, Result, RunState, Step
from redstart.ports.bundle import Ports
from redstart.steps.decide.child_runs import get_child_results, is_waiting_for_child_runs, with_packages
from redstart.steps.decide.ending import accept, accept_passing_patch, can_ask_for_tests, decide_on_trouble, end, stop
from redstart.steps.decide.person import ask_about_patch, decide_with_person
from redstart.steps.decide.retry import change_course, retry, retry_from
from redstart.toolkit.child_runs import plan_next_subtasks
from redstart.toolkit.installs.planned_packages import with_planned_packages


async def decide_program(run: RunState, ports: Ports) -> Decision:
    plan, reproduction, test_result = run.now.plan, run.now.reproduce, run.now.test
    if run.last is Step.plan and plan is not None and plan.asks:
        return Decision(action=Action.ask, reason=plan.asks, result=Result.needs_human, next=Step.plan)
    if _is_done_in_parts(run):
        results = await get_child_results(run, ports)
        parts = plan_next_subtasks(with_planned_packages(run, ports), plan or Plan(), results, ports.trees.merge)
        return with_packages(parts, results)
    if (decision := await decide_with_person(run, ports)) is not None:
        return decision
    if reproduction is not None and reproduction.trouble and not can_ask_for_tests(run, reproduction):
        return decide_on_trouble(run, reproduction)
    if test_result is not None and test_result.verdict.is_green:
        return _decide_passing_tests(run, test_result)
    if test_result is not None and test_result.verdict.asks:
        return ask_about_patch(run)
    return stop(run) or change_course(run, retry(run))


def _is_done_in_parts(run: RunState) -> bool:
    """Return whether the plan's subtasks run as child runs, until all are done."""
    return not run.spec.errand and (is_waiting_for_child_runs(run) or (run.splits and run.last is Step.plan))


def _decide_passing_tests(run: RunState, test_result: PatchTestResult) -> Decision:
    """Decide on passing tests. Tests that would not detect a broken program are rewritten unless they are the
    user's."""
    mutants = test_result.mutants
    if mutants is None or run.foreign_language:
        return accept_passing_patch(run, test_result)
    passed = test_result.report.counts.passed
    detected = f"{mutants.killed} of {mutants.sampled} small changes to the program"
    if not mutants.too_many_survive or not run.spec.task.writes_first_tests:
        summary = f"{format_count(passed, 'test')} {'passes' if passed == 1 else 'pass'}"
        return accept(Result.verified, f"{summary}; they notice {detected}")
    weakness = f"the tests notice only {detected}"
    decision = stop(run)
    if decision is None:
        return retry_from(Step.reproduce, f"{weakness}; asking for better tests")
    is_capped = decision.result is Result.capped
    return end(Result.capped, f"{decision.reason}; {weakness}") if is_capped else end(Result.unsolved, weakness)
