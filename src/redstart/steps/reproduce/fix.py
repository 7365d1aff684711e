"""Find the tests that fail on the current code; for an issue, add a failing test to the existing ones."""

from __future__ import annotations

from redstart.core.report import ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import FixTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import reproduced, run_tests, with_traced_lines
from redstart.steps.reproduce.flakes import without_flakes
from redstart.steps.reproduce.red_test import can_be_joined, write_red_test
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.render import section
from redstart.toolkit.suites.select import chooser


async def reproduce_failure(run: RunState, ports: Ports) -> ReproductionResult:
    task, done = run.spec.task_of(FixTask), await run_tests(run, ports, run.spec.base)
    if task.issue and can_be_joined(done):
        return await write_red_test(run, ports, section("Issue", data("issue", run.spec.goal, 16_000)), done)
    found = reproduced(run, ports, done, chosen=chooser(task.targets, task.keyword))
    if task.issue:
        return found
    return await with_traced_lines(run, ports, await without_flakes(run, ports, found))
