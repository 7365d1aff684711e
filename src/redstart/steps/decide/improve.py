"""Decide on one improvement, and on the run that starts one improvement after another."""

from __future__ import annotations

from redstart.core.noun import clip
from redstart.core.report import PatchTestResult
from redstart.core.run import Decision, Result, RunState
from redstart.core.shell import Environment, Execution
from redstart.core.tasks import ImproveTask
from redstart.ports.bundle import Ports
from redstart.steps.decide.child_runs import ended_child_runs, with_packages
from redstart.steps.decide.ending import accept, accept_green, end, limit_reached, stop, trouble_decision
from redstart.steps.decide.person import decide_with_person
from redstart.steps.decide.retry import retry, turned
from redstart.toolkit.errands import next_cycle, spent
from redstart.toolkit.honesty.verdict.metric import weigh
from redstart.toolkit.languages.registry import is_code


async def decide_cycle(run: RunState, ports: Ports) -> Decision:
    if run.spec.begins_cycles:
        return await _next_cycle(run, ports)
    if (asked := await decide_with_person(run, ports)) is not None:
        return asked
    found, tested = run.now.reproduce, run.now.test
    if found is not None and found.trouble:
        return trouble_decision(run, found)
    if tested is not None and tested.verdict.honest_green:
        return await _green(run, ports, tested)
    if found is None:
        return end(Result.capped, limit) if (limit := limit_reached(run)) else end(Result.unsolved, _no_aim(run))
    # No person is asked in the middle of a cycle: a patch that needs approval is tried in another way.
    return stop(run) or turned(run, retry(run))


async def _next_cycle(run: RunState, ports: Ports) -> Decision:
    ended = await ended_child_runs(run, ports)
    so_far = run.model_copy(update={"spend": run.spend.plus(spent(ended))})
    files = ports.trees.files(run.draft or run.spec.base)
    empty = bool(run.spec.goal) and not any(map(is_code, files))
    return with_packages(next_cycle(run, ended, limit_reached(so_far), empty=empty), ended)


async def _green(run: RunState, ports: Ports, judged: PatchTestResult) -> Decision:
    """Accept passing tests unless the user's metric got worse."""
    accepted, metric, made = accept_green(run, judged), run.spec.task_of(ImproveTask).metric, run.now.made
    if accepted.result is not Result.verified or metric is None or made is None:
        return accepted
    environment = Environment.model_validate_json(ports.blobs.get(run.suited.suite.environment))
    asked = Execution(
        argv=metric.command,
        snapshot=made,
        environment=environment,
        limits=run.spec.sandbox,
        cwd=run.spec.suite.folder,
    )
    weighed = await weigh(ports.sandbox, metric, asked, run.spec.base, made)
    if weighed.holds:
        return accept(Result.verified, f"{accepted.reason}; {weighed.words}")
    return end(Result.unsolved if weighed.is_measured else Result.environment, clip(weighed.words, 400))


def _no_aim(run: RunState) -> str:
    """Explain why a cycle ends before anything is tried."""
    fault = run.now.plan.fault if run.now.plan else ""
    return f"the model named no usable improvement: {fault}" if fault else "the model named no improvement"
