"""Reproduce the failure: run the suite on the unchanged snapshot. Without tests (create), ask for tests first.

For an issue or an improvement, ask for a test too: the program exists, and its other tests stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from redstart.core.report import ReproductionResult
from redstart.core.run import Mode, RunState
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.create import reproduce_program
from redstart.steps.reproduce.fix import reproduce_failure
from redstart.steps.reproduce.improve import reproduce_for_cycle

REPRODUCTIONS: dict[Mode, Callable[[RunState, Ports], Awaitable[ReproductionResult]]] = {
    Mode.fix: reproduce_failure,
    Mode.create: reproduce_program,
    Mode.improve: reproduce_for_cycle,
}
"""How each mode reproduces the failure. An audit runs no tests."""


async def reproduce(run: RunState, ports: Ports) -> ReproductionResult:
    run = run.model_copy(update={"spec": run.suited})
    ports.announce("baseline")
    return await REPRODUCTIONS[run.spec.mode](run, ports)
