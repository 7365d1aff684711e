"""The reference loop as an engine: for the library and for tests."""

from __future__ import annotations

from redstart.core.run import RunState
from redstart.flow.loop import Advance, StepAdvance, run_loop


async def run_inline(state: RunState, advance: Advance) -> StepAdvance:
    return await run_loop(state, advance)
