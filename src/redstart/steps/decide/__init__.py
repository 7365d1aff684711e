"""Decide whether to retry, accept or stop. This step enforces the limits; the user reads the reason it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from redstart.core.run import Decision, Mode, RunState
from redstart.ports.bundle import Ports
from redstart.steps.decide.audit import decide_audit
from redstart.steps.decide.create import decide_program
from redstart.steps.decide.fix import decide_fix
from redstart.steps.decide.improve import decide_cycle

DECISIONS: dict[Mode, Callable[[RunState, Ports], Awaitable[Decision]]] = {
    Mode.fix: decide_fix,
    Mode.create: decide_program,
    Mode.improve: decide_cycle,
    Mode.audit: decide_audit,
}


async def decide(run: RunState, ports: Ports) -> Decision:
    return await DECISIONS[run.spec.mode](run, ports)
