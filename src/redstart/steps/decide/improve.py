"""Decide on one improvement, and on the run that starts one improvement after another."""

from __future__ import annotations

from redstart.core.frozen import clip
from redstart.core.report import PatchTestResult
from redstart.core.run import Decision, Result, RunState
from redstart.core.shell import Environment, Execution
from redstart.core.tasks import ImproveTask
from redstart.ports.bundle import Ports
from redstart.steps.decide.child_runs import get_child_results, with_packages
from redstart.steps.decide.ending import accept, accept_passing_patch, decide_on_trouble, end, limit_reached, stop
from redstart.steps.decide.person import decide_with_person
from redstart.steps.decide.retry import change_course, retry
from redstart.toolkit.child_runs import plan_next_cycle, sum_spend
from redstart.toolkit.honesty.verdict.metric import weigh
from redstart.toolkit.languages.registry import is_code


async def decide_cycle(run: RunState, ports: Ports) -> Decision:
    if run.spec.has_cycles:
        return await _decide_next_cycle(run, ports)
    if (decision := await decide_with_person(run, ports)) is not None:
        return decision
    reproduction, test_result = run.now.reproduce, run.now.test
    if reproduction is not None and reproduction.trouble:
        return decide_on_trouble(run, reproduction)
    if test_result is not None and test_result.verdict.is_green:
        return await _decide_passing_tests(run, ports, test_result)
    if reproduction is None:
        return (
            end(Result.capped, limit)
            if (limit := limit_reached(run))
            else end(Result.unsolved, _explain_no_improvement(run))
        )
    # No person is asked in the middle of a cycle: a patch that needs approval is tried in another way.
    return stop(run) or change_course(run, retry(run))


async def _decide_next_cycle(run: RunState, ports: Ports) -> Decision:
    results = await get_child_results(run, ports)
    updated_run = run.model_copy(update={"spend": run.spend.add(sum_spend(results))})
    files = ports.trees.list_files(run.draft or run.spec.base)
    empty = bool(run.spec.goal) and not any(map(is_code, files))
    return with_packages(plan_next_cycle(run, results, limit_reached(updated_run), empty=empty), results)


async def _decide_passing_tests(run: RunState, ports: Ports, test_result: PatchTestResult) -> Decision:
    """Accept passing tests unless the user's metric got worse."""
    accepted, metric, snapshot = (
        accept_passing_patch(run, test_result),
        run.spec.get_task(ImproveTask).metric,
        run.now.made,
    )
    if accepted.result is not Result.verified or metric is None or snapshot is None:
        return accepted
    environment = Environment.model_validate_json(ports.blobs.get(run.suited.suite.environment))
    execution = Execution(
        argv=metric.command,
        snapshot=snapshot,
        environment=environment,
        limits=run.spec.sandbox,
        cwd=run.spec.suite.folder,
    )
    weighed = await weigh(ports.sandbox, metric, execution, run.spec.base, snapshot)
    if weighed.is_met:
        return accept(Result.verified, f"{accepted.reason}; {weighed.message}")
    return end(Result.unsolved if weighed.is_measured else Result.environment, clip(weighed.message, 400))


def _explain_no_improvement(run: RunState) -> str:
    """Explain why a cycle ends before anything is tried."""
    fault = run.now.plan.fault if run.now.plan else ""
    return f"the model named no usable improvement: {fault}" if fault else "the model named no improvement"
