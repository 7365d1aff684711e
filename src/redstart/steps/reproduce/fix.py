"""Find the tests that fail on the current code; for an issue, add a failing test to the existing ones."""

from __future__ import annotations

from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import FixTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import determine_targets, run_tests, with_traced_lines
from redstart.steps.reproduce.earlier_failures import without_earlier_failures
from redstart.steps.reproduce.flakes import without_flakes
from redstart.steps.reproduce.red_test import can_be_joined, write_failing_test
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts.render import format_section
from redstart.toolkit.suites.selection import build_selector


async def reproduce_failure(run: RunState, ports: Ports) -> ReproductionResult:
    task, suite_run = run.spec.get_task(FixTask), await run_tests(run, ports, run.spec.base)
    if task.issue and can_be_joined(suite_run):
        return await write_failing_test(
            run, ports, format_section("Issue", wrap_untrusted("issue", run.spec.goal, 16_000)), suite_run
        )
    reproduction = determine_targets(run, ports, suite_run, is_selected=build_selector(task.targets, task.keyword))
    if task.issue:
        return reproduction
    steady = await without_flakes(run, ports, reproduction)
    return await with_traced_lines(run, ports, await without_earlier_failures(run, ports, steady))
