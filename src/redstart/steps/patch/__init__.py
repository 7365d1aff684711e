"""Ask the strong tier for a patch: in a working session with tools, or in one answer."""

from __future__ import annotations

from redstart.core.change import Patch
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.steps.patch.session import patch_in_session
from redstart.steps.patch.single import patch_in_one_answer


async def patch(run: RunState, ports: Ports) -> Patch:
    if run.spec.asks.session_calls:
        return await patch_in_session(run, ports)
    return await patch_in_one_answer(run, ports)
