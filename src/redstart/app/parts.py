"""The runs that another run began: parts of a program, cycles of improvement."""

from __future__ import annotations

from redstart.app.wire import House
from redstart.core.run import RunState
from redstart.flow.errands import errand_id
from redstart.ports.store.port.journal import Record


async def part_ids(house: House, state: RunState) -> list[str]:
    """Their ids, in the order in which they were begun; those that were only decided on are not there."""
    wanted = [errand_id(state.run_id, number) for number in range(1, state.work.begun + 1)]
    if not wanted:
        return []
    there = await house.adapters.store.runs(prefix=f"{state.run_id}.", limit=len(wanted) * 2)
    known = {row.run_id for row in there}
    return [one for one in wanted if one in known]


async def all_records(house: House, state: RunState) -> list[Record]:
    """The journal of a run, and after it those of its parts in their order."""
    journal = house.adapters.journal
    ids = (state.run_id, *await part_ids(house, state))
    return [record for one in ids for record in await journal.records(one)]
