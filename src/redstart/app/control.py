"""Asking runs to stop, wherever they are driven."""

from __future__ import annotations

import asyncio

from redstart.app.standing import part_ids, status_now
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.run import Status
from redstart.core.standing import Control

PATIENCE = 10.0
"""Seconds that a driver has to heed a cancellation before it is not waited for any longer."""
LOOK = 0.1


async def ask(house: AppContext, run_id: str, control: Control) -> None:
    """Asks the run, and the child runs that it waits for, to stop. Raises `ConfigError` where it has finished."""
    state = await house.adapters.store.load(run_id)
    if state.status is Status.finished:
        raise ConfigError(f"run {run_id} has finished: {state.reason}", remedy=f"see it with: redstart show {run_id}")
    for each in (run_id, *await part_ids(house, state)):
        await house.adapters.store.control(each, control)


async def await_cancelled(house: AppContext, run_id: str, patience: float = PATIENCE) -> bool:
    """Whether the run is cancelled: at once where nobody drives it, else as soon as its driver has heeded it."""
    ends = house.adapters.world.monotonic() + patience
    while await status_now(house, run_id) is not Status.cancelled:
        if house.adapters.world.monotonic() > ends:
            return False
        await asyncio.sleep(LOOK)
    return True


async def clear(house: AppContext, run_id: str) -> None:
    """Takes back what was asked: who resumes a run wants it to go on."""
    state = await house.adapters.store.load(run_id)
    for each in (run_id, *await part_ids(house, state)):
        await house.adapters.store.control(each, Control.none)
