"""What a person asks of a run that somebody else drives: to pause, or to end where it stands. It works at home too."""

from __future__ import annotations

from redstart.app.parts import part_ids
from redstart.app.wire import House
from redstart.core.errors import ConfigError
from redstart.core.run import Status
from redstart.ports.store.port import Control


async def ask(house: House, run_id: str, control: Control) -> None:
    """Asks the run, and those that it waits for, to stop after the step at hand.

    Raises `ConfigError` where the run has ended already.
    """
    state = await house.adapters.store.load(run_id)
    if state.status is Status.ended:
        raise ConfigError(f"run {run_id} has ended: {state.reason}", remedy=f"redstart show {run_id} says how")
    for one in (run_id, *await part_ids(house, state)):
        await house.adapters.store.control(one, control)


async def clear(house: House, run_id: str) -> None:
    """Takes back what was asked: who goes on with a run wants it to go on."""
    state = await house.adapters.store.load(run_id)
    for one in (run_id, *await part_ids(house, state)):
        await house.adapters.store.control(one, Control.none)
