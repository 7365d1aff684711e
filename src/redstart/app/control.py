"""Ask runs to stop, wherever they are driven."""

from __future__ import annotations

import asyncio

from redstart.app.standing import part_ids, status_now
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.run import Status
from redstart.core.standing import Control

PATIENCE = 10.0
"""How long to wait for a driver to respond to a cancellation."""
LOOK = 0.1


async def ask(house: AppContext, run_id: str, control: Control) -> None:
    """Ask the run, and the child runs that it waits for, to stop. Raises `ConfigError` if it has finished."""
    state = await house.adapters.store.load(run_id)
    if state.status is Status.finished:
        raise ConfigError(f"run {run_id} has finished: {state.reason}", remedy=f"see it with: redstart show {run_id}")
    for each in (run_id, *await part_ids(house, state)):
        await house.adapters.store.control(each, control)


async def await_cancelled(house: AppContext, run_id: str, patience: float = PATIENCE) -> bool:
    """Wait until the run is cancelled: at once if nothing drives it, else when its driver responds. False on
    timeout."""
    ends = house.adapters.world.monotonic() + patience
    while await status_now(house, run_id) is not Status.cancelled:
        if house.adapters.world.monotonic() > ends:
            return False
        await asyncio.sleep(LOOK)
    return True


async def clear(house: AppContext, run_id: str) -> None:
    """Clear requests to stop, because a person who resumes a run wants it to continue."""
    state = await house.adapters.store.load(run_id)
    for each in (run_id, *await part_ids(house, state)):
        await house.adapters.store.control(each, Control.none)
