"""Get a failing test for one improvement. If the program already has failing tests, those come first."""

from __future__ import annotations

from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import ImproveTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import determine_targets, run_tests, with_traced_lines
from redstart.steps.reproduce.flakes import without_flakes
from redstart.steps.reproduce.red_test import can_be_joined, write_failing_test
from redstart.toolkit.prompts import sections


async def reproduce_for_cycle(run: RunState, ports: Ports) -> ReproductionResult:
    """Reproduce for one cycle. A base that an earlier improvement has proven is not run again without the new test."""
    baseline = None if run.spec.get_task(ImproveTask).proven else await run_tests(run, ports, run.spec.base)
    if baseline and not can_be_joined(baseline):
        return determine_targets(run, ports, baseline)
    if baseline and any(case.is_red for case in baseline.cases):
        reproduction = determine_targets(run, ports, baseline)
        if not reproduction.trouble:
            return await with_traced_lines(run, ports, await without_flakes(run, ports, reproduction))
    return await write_failing_test(run, ports, sections.build_goal_section(run.spec.goal), baseline)
