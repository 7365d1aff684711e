"""The current status of runs, from the stored rows, the processes that drive them and their child runs."""

from __future__ import annotations

import platform
from datetime import datetime

from redstart.app.wire import AppContext
from redstart.core.errors import NewerFormat, StoreError
from redstart.core.noun import FrozenValue
from redstart.core.run import RunState, Spend, Status
from redstart.core.standing import RunRow, is_driven, status_of
from redstart.flow.errands import errand_id
from redstart.ports.store.port.journal import JournalRecord
from redstart.toolkit.repo.trees import alive

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


def row_is_driven(row: RunRow, now: float) -> bool:
    return is_driven(row, now=now, host=platform.node(), is_alive=alive)


def row_status(row: RunRow, now: float) -> Status:
    return status_of(row, driven=row_is_driven(row, now))


async def row_of(house: AppContext, run_id: str) -> RunRow:
    """Load the stored row of a run. Raises `StoreError` for an unknown run."""
    rows = await house.adapters.store.runs(prefix=run_id, limit=ALIKE)
    for row in rows:
        if row.run_id == run_id:
            return row
    raise StoreError(f"there is no run {run_id}")


async def status_now(house: AppContext, run_id: str) -> Status:
    """Load the current status of a run. Raises `StoreError` for an unknown run."""
    return row_status(await row_of(house, run_id), house.adapters.world.now())


async def load_as_it_stands(house: AppContext, run_id: str) -> RunState:
    """Load the stored state with the current status and, if its steps do not say why it stopped, the stored reason."""
    row, state = await row_of(house, run_id), await house.adapters.store.load(run_id)
    status = row_status(row, house.adapters.world.now())
    why = row.stop.reason if row.stop is not None and not state.reason else state.reason
    return state.model_copy(update={"status": status, "reason": why})


async def list_runs(house: AppContext, *, folder: str | None, limit: int, every: bool) -> list[RunView]:
    """List runs, newest first, on request with child runs."""
    rows = await house.adapters.store.runs(folder=folder, limit=limit, errands=every)
    return [await _view(house, row) for row in rows]


async def _view(house: AppContext, row: RunRow) -> RunView:
    reason, spend = row.stop.reason if row.stop is not None else "", Spend()
    try:
        state = await house.adapters.store.load(row.run_id)
        reason, spend = state.reason or reason, state.spend
    except NewerFormat as error:
        reason = str(error)
    return RunView(
        run_id=row.run_id,
        created=row.created,
        updated=row.updated,
        mode=row.mode,
        status=row_status(row, house.adapters.world.now()),
        result=row.result,
        reason=reason,
        model=row.options.models.strong if row.options is not None else "",
        usd=round(spend.usd, 6),
        unpriced=spend.unpriced,
        repo=row.repo,
        goal=row.goal,
        folder=row.folder,
    )


async def part_ids(house: AppContext, state: RunState) -> list[str]:
    """List the IDs of the child runs in the order in which they started. Runs that were only decided on are left
    out."""
    wanted = [errand_id(state.run_id, number) for number in range(1, state.work.begun + 1)]
    if not wanted:
        return []
    there = await house.adapters.store.runs(prefix=f"{state.run_id}.", limit=len(wanted) * 2)
    known = {row.run_id for row in there}
    return [item for item in wanted if item in known]


async def all_records(house: AppContext, state: RunState) -> list[JournalRecord]:
    """Load the journal of a run, followed by the journals of its child runs in order."""
    journal = house.adapters.journal
    ids = (state.run_id, *await part_ids(house, state))
    return [record for id_ in ids for record in await journal.records(id_)]
