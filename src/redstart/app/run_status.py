"""The current status of runs, from the stored rows, the processes that drive them and their child runs."""

from __future__ import annotations

import platform
from datetime import datetime

from redstart.app.wire import AppContext
from redstart.core.errors import NewerFormat, StoreError
from redstart.core.frozen import FrozenValue
from redstart.core.run import RunState, Spend, Status
from redstart.core.run_status import RunRow, is_driven, resolve_status
from redstart.flow.child_runs import make_child_run_id
from redstart.ports.store.port.journal import JournalRecord
from redstart.toolkit.repo.trees import is_alive

ALIKE = 1000
"""The maximum number of runs to read for one prefix: a child run's ID is a prefix of IDs with more digits."""


class RunView(FrozenValue):
    """A run as `runs list` shows it."""

    run_id: str
    created: datetime
    updated: datetime
    mode: str
    status: Status
    result: str
    reason: str
    """Why it finished, failed or stopped."""
    model: str
    """Empty if the run stored none."""
    usd: float
    unpriced: int
    """Model calls of unknown price, which `usd` does not count."""
    repo: str
    goal: str
    folder: str


def is_row_driven(row: RunRow, now: float) -> bool:
    return is_driven(row, now=now, host=platform.node(), is_alive=is_alive)


def resolve_row_status(row: RunRow, now: float) -> Status:
    return resolve_status(row, has_driver=is_row_driven(row, now))


async def load_row(app: AppContext, run_id: str) -> RunRow:
    """Load the stored row of a run. Raises `StoreError` for an unknown run."""
    rows = await app.adapters.store.list_runs(prefix=run_id, limit=ALIKE)
    for row in rows:
        if row.run_id == run_id:
            return row
    raise StoreError(f"there is no run '{run_id}'")


async def load_status(app: AppContext, run_id: str) -> Status:
    """Load the current status of a run. Raises `StoreError` for an unknown run."""
    return resolve_row_status(await load_row(app, run_id), app.adapters.world.now())


async def load_as_it_stands(app: AppContext, run_id: str) -> RunState:
    """Load the stored state with the current status and, if its steps do not say why it stopped, the stored reason."""
    row, state = await load_row(app, run_id), await app.adapters.store.load(run_id)
    status = resolve_row_status(row, app.adapters.world.now())
    stop_reason = row.stop.reason if row.stop is not None and not state.reason else state.reason
    return state.model_copy(update={"status": status, "reason": stop_reason})


async def list_runs(app: AppContext, *, folder: str | None, limit: int, include_children: bool) -> list[RunView]:
    """List runs, newest first, on request with child runs."""
    rows = await app.adapters.store.list_runs(folder=folder, limit=limit, include_child_runs=include_children)
    return [await _build_view(app, row) for row in rows]


async def _build_view(app: AppContext, row: RunRow) -> RunView:
    reason, spend = row.stop.reason if row.stop is not None else "", Spend()
    try:
        state = await app.adapters.store.load(row.run_id)
        reason, spend = state.reason or reason, state.spend
    except NewerFormat as error:
        reason = str(error)
    return RunView(
        run_id=row.run_id,
        created=row.created,
        updated=row.updated,
        mode=row.mode,
        status=resolve_row_status(row, app.adapters.world.now()),
        result=row.result,
        reason=reason,
        model=row.options.models.strong if row.options is not None else "",
        usd=round(spend.usd, 6),
        unpriced=spend.unpriced,
        repo=row.repo,
        goal=row.goal,
        folder=row.folder,
    )


async def list_child_ids(app: AppContext, state: RunState) -> list[str]:
    """List the IDs of the child runs in the order in which they started. Child runs that are planned but not started
    are left out.
    """
    child_ids = [make_child_run_id(state.run_id, number) for number in range(1, state.work.begun + 1)]
    if not child_ids:
        return []
    rows = await app.adapters.store.list_runs(prefix=f"{state.run_id}.", limit=len(child_ids) * 2)
    existing_ids = {row.run_id for row in rows}
    return [item for item in child_ids if item in existing_ids]


async def load_all_records(app: AppContext, state: RunState) -> list[JournalRecord]:
    """Load the journal of a run, followed by the journals of its child runs in order."""
    journal = app.adapters.journal
    ids = (state.run_id, *await list_child_ids(app, state))
    return [record for id_ in ids for record in await journal.list_records(id_)]
