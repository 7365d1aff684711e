"""Recall earlier fixes of the failure, and plan what to do if that is not obvious: for a goal, or when stuck."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from redstart.core.learning import Plan
from redstart.core.run import Mode, RunState
from redstart.ports.bundle import Ports
from redstart.steps.plan.audit import plan_audit
from redstart.steps.plan.create import plan_program
from redstart.steps.plan.fix import plan_fix
from redstart.steps.plan.improve import plan_cycle

PLANS: dict[Mode, Callable[[RunState, Ports], Awaitable[Plan]]] = {
    Mode.fix: plan_fix,
    Mode.create: plan_program,
    Mode.improve: plan_cycle,
    Mode.audit: plan_audit,
}


async def plan(run: RunState, ports: Ports) -> Plan:
    return await PLANS[run.spec.mode](run, ports)
