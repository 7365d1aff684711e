"""Follow a run that another process drives, from what it commits to the store."""

from __future__ import annotations

import asyncio
import time

from redstart.app.exits import exit_code
from redstart.app.fleet import standing
from redstart.app.standing import part_ids, row_is_driven, row_of, status_now
from redstart.app.wire import AppContext
from redstart.cli.display import Display
from redstart.cli.ending import say_ending
from redstart.cli.session import DriveMode
from redstart.core.errors import PortError
from redstart.core.run import RunState, Status
from redstart.core.standing import HaltReason, status_of
from redstart.flow.route import waits_for_a_person

LOOK = 0.3
"""Seconds between two reads of the store."""
IDLE = 5.0
"""Seconds without news before checking whether anything drives the run."""
PATIENCE = 60.0
"""Seconds without news before giving up on a fleet that does not answer."""


async def watch(house: AppContext, run_id: str, shown: Display, how: DriveMode) -> int:
    """Show what is committed until the run ends, waits for a person, or has no driver. Return the exit code."""
    seen: dict[str, int] = {}
    news = asked = time.monotonic()
    while True:
        state = await house.adapters.store.load(run_id)
        if await _show_new(house, state, seen, shown):
            news = asked = time.monotonic()
        if await status_now(house, run_id) is Status.cancelled:
            shown.say(f"run {run_id} was cancelled", "bold")
            return exit_code(state)
        if state.status is Status.finished or await _asks(house, state):
            path = await say_ending(house, state, shown, patch=how.patch)
            code = exit_code(state)
            shown.finish(exit_code=code, patch=str(path or ""), applied=False)
            return code
        if time.monotonic() - asked > IDLE:
            if why := await _stands_still(house, state, patient=time.monotonic() - news < PATIENCE):
                shown.say(why, "bold")
                return exit_code(state)
            asked = time.monotonic()
        await asyncio.sleep(LOOK)


async def _show_new(house: AppContext, state: RunState, seen: dict[str, int], shown: Display) -> bool:
    """Show the new events of the run and its child runs. Return whether there were any."""
    found = False
    for id_ in (state.run_id, *await part_ids(house, state)):
        for event in await house.adapters.store.events(id_, seen.get(id_, -1)):
            shown(event)
            seen[id_], found = event.seq, True
    return found


async def _asks(house: AppContext, state: RunState) -> bool:
    """Return whether the run, or one of its child runs, has a question for a person that nobody has answered."""
    runs = [state, *[await house.adapters.store.load(id_) for id_ in await part_ids(house, state)]]
    for run in runs:
        if waits_for_a_person(run):
            told = await house.adapters.store.told(run.run_id)
            if not any(each.version == run.version for each in told):
                return True
    return False


async def _stands_still(house: AppContext, state: RunState, *, patient: bool) -> str:
    """Return why no more events will come. Empty if something still drives the run."""
    run_id = state.run_id
    row = await row_of(house, run_id)
    if row_is_driven(row, house.adapters.world.now()):
        return ""
    try:
        stands = await standing(house.settings, state)
    except PortError as error:
        return "" if patient else f"{error}\nEvery committed step is saved. Continue with: redstart resume {run_id}"
    if stands is None:
        status = status_of(row, driven=False).value
        why = f": {row.stop.reason}" if row.stop is not None and row.stop.reason else ""
        return f"run {run_id} is {status}{why}\nContinue with: redstart resume {run_id}"
    if stands.phase != "waits":
        return ""
    why = f": {stands.reason}" if stands.halt is HaltReason.trouble else ""
    return f"run {run_id} is waiting{why}\nContinue with: redstart resume {run_id}"
