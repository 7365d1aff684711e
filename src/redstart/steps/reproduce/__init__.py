"""Gets red: the suite on the untouched snapshot. Where there is no test yet (create), asks for tests first.

Of an issue and of an improvement a test is asked for too: the program is there, and its other tests stay as they are.
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
"""An audit runs no test."""


async def reproduce(run: RunState, ports: Ports) -> ReproductionResult:
    run = run.model_copy(update={"spec": run.suited})
    ports.announce("baseline")
    return await REPRODUCTIONS[run.spec.mode](run, ports)
