"""Get a failing test for one improvement. If the program already has failing tests, those come first."""

from __future__ import annotations

from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import ImproveTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import reproduced, run_tests, with_traced_lines
from redstart.steps.reproduce.flakes import without_flakes
from redstart.steps.reproduce.red_test import can_be_joined, write_red_test
from redstart.toolkit.prompts import sections


async def reproduce_for_cycle(run: RunState, ports: Ports) -> ReproductionResult:
    """Reproduce for one cycle. A base that an earlier improvement has proven is not run again without the new test."""
    before = None if run.spec.task_of(ImproveTask).proven else await run_tests(run, ports, run.spec.base)
    if before and not can_be_joined(before):
        return reproduced(run, ports, before)
    if before and any(case.red for case in before.cases):
        found = reproduced(run, ports, before)
        if not found.trouble:
            return await with_traced_lines(run, ports, await without_flakes(run, ports, found))
    return await write_red_test(run, ports, sections.goal(run.spec.goal), before)
