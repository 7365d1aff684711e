"""Plan a fix. If the failing test says what to do, there is no plan until the run is stuck."""

from __future__ import annotations

from redstart.core.learning import Plan
from redstart.core.run import Effort, RunState
from redstart.core.tasks import FixTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import CIRCLES, ask_for_change, recall_failure


async def plan_fix(run: RunState, ports: Ports) -> Plan:
    base_plan = await recall_failure(run, ports)
    # The failing test of an issue says what to do; a goal alone does not.
    is_clear = run.spec.get_task(FixTask).issue or not run.spec.goal
    if is_clear and not run.history and run.spec.effort is not Effort.full:
        return base_plan
    return await ask_for_change(run, ports, base_plan, CIRCLES if run.history else "")
