"""Follow a run that another process drives, from what it commits to the store."""

from __future__ import annotations

import asyncio
import time

from redstart.app.exit_codes import exit_code
from redstart.app.fleet import get_supervisor_state
from redstart.app.run_status import is_row_driven, list_child_ids, load_row, load_status
from redstart.app.wire import AppContext
from redstart.cli.display import Display
from redstart.cli.run_summary import print_ending
from redstart.cli.session import DriveMode
from redstart.core.errors import PortError
from redstart.core.run import RunState, Status
from redstart.core.run_status import HaltReason, resolve_status
from redstart.flow.route import is_waiting_for_person

POLL_SECONDS = 0.3
"""Seconds between two reads of the store."""
IDLE = 5.0
"""Seconds without news before checking whether anything drives the run."""
FLEET_TIMEOUT_SECONDS = 60.0
"""Seconds without news before giving up on a fleet that does not answer."""


async def watch(app: AppContext, run_id: str, ui: Display, drive_mode: DriveMode) -> int:
    """Show what is committed until the run ends, waits for a person, or has no driver. Return the exit code."""
    last_seq_by_run: dict[str, int] = {}
    news = last_check = time.monotonic()
    while True:
        state = await app.adapters.store.load(run_id)
        if await _show_new(app, state, last_seq_by_run, ui):
            news = last_check = time.monotonic()
        if await load_status(app, run_id) is Status.cancelled:
            ui.print_line(f"run {run_id} was cancelled", "bold")
            return exit_code(state)
        if state.status is Status.finished or await _has_open_question(app, state):
            path = await print_ending(app, state, ui, patch=drive_mode.patch)
            code = exit_code(state)
            ui.finish(exit_code=code, patch=str(path or ""), applied=False)
            return code
        if time.monotonic() - last_check > IDLE:
            if reason := await _find_idle_reason(
                app, state, keep_waiting=time.monotonic() - news < FLEET_TIMEOUT_SECONDS
            ):
                ui.print_line(reason, "bold")
                return exit_code(state)
            last_check = time.monotonic()
        await asyncio.sleep(POLL_SECONDS)


async def _show_new(app: AppContext, state: RunState, last_seq_by_run: dict[str, int], ui: Display) -> bool:
    """Show the new events of the run and its child runs. Return whether there were any."""
    has_news = False
    for id_ in (state.run_id, *await list_child_ids(app, state)):
        for event in await app.adapters.store.list_events(id_, last_seq_by_run.get(id_, -1)):
            ui(event)
            last_seq_by_run[id_], has_news = event.seq, True
    return has_news


async def _has_open_question(app: AppContext, state: RunState) -> bool:
    """Return whether the run, or one of its child runs, has a question for a person that nobody has answered."""
    runs = [state, *[await app.adapters.store.load(id_) for id_ in await list_child_ids(app, state)]]
    for run in runs:
        if is_waiting_for_person(run):
            messages = await app.adapters.store.list_messages(run.run_id)
            if not any(message.version == run.version for message in messages):
                return True
    return False


async def _find_idle_reason(app: AppContext, state: RunState, *, keep_waiting: bool) -> str:
    """Return why no more events will come. Empty if something still drives the run."""
    run_id = state.run_id
    row = await load_row(app, run_id)
    if is_row_driven(row, app.adapters.world.now()):
        return ""
    try:
        supervisor = await get_supervisor_state(app.settings, state)
    except PortError as error:
        return (
            "" if keep_waiting else f"{error}\nEvery committed step is saved. Continue with: redstart resume {run_id}"
        )
    if supervisor is None:
        status = resolve_status(row, has_driver=False).value
        reason_suffix = f": {row.stop.reason}" if row.stop is not None and row.stop.reason else ""
        return f"run {run_id} is {status}{reason_suffix}\nContinue with: redstart resume {run_id}"
    if supervisor.phase != "waits":
        return ""
    reason_suffix = f": {supervisor.reason}" if supervisor.halt is HaltReason.trouble else ""
    return f"run {run_id} is waiting{reason_suffix}\nContinue with: redstart resume {run_id}"
