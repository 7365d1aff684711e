"""Ask runs to stop, on this machine or another one."""

from __future__ import annotations

import asyncio

from redstart.app.run_status import list_child_ids, load_status
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.run import Status
from redstart.core.run_status import Control

CANCEL_TIMEOUT_SECONDS = 10.0
"""How long to wait for a driver to respond to a cancellation."""
POLL_SECONDS = 0.1


async def ask(app: AppContext, run_id: str, control: Control) -> None:
    """Ask the run, and the child runs that it waits for, to stop. Raises `ConfigError` if it has finished."""
    state = await app.adapters.store.load(run_id)
    if state.status is Status.finished:
        raise ConfigError(f"run {run_id} has finished: {state.reason}", remedy=f"see it with: redstart show {run_id}")
    for target_id in (run_id, *await list_child_ids(app, state)):
        await app.adapters.store.control(target_id, control)


async def await_cancelled(app: AppContext, run_id: str, max_wait: float = CANCEL_TIMEOUT_SECONDS) -> bool:
    """Wait until the run is cancelled: at once if nothing drives it, else when its driver responds. False on
    timeout."""
    ends = app.adapters.world.monotonic() + max_wait
    while await load_status(app, run_id) is not Status.cancelled:
        if app.adapters.world.monotonic() > ends:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def clear(app: AppContext, run_id: str) -> None:
    """Clear requests to stop, because a person who resumes a run wants it to continue."""
    state = await app.adapters.store.load(run_id)
    for target_id in (run_id, *await list_child_ids(app, state)):
        await app.adapters.store.control(target_id, Control.none)
