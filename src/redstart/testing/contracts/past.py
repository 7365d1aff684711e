"""The contract of reading many past runs. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from redstart.core.events import Phase
from redstart.core.run import Step
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.runs import PastRun, Store
from redstart.testing.contracts.store import DAWN, Stores, begin
from redstart.testing.states import commit, event, record, spec, state

MANY = 450
"""More runs than are read in one page."""


async def past(store: Store, since: datetime | None = None) -> list[PastRun]:
    return [item async for item in store.past(since)]


class PastContract:
    def test_a_run_is_told_with_its_ends_its_beginning_and_its_answers(self, stores: Stores) -> None:
        async def scenario() -> None:
            now, fence = await begin(stores.store)
            first = commit(now, Step.reproduce, artifact='{"report": 1}')
            said = [
                event(seq=0, name="reproduce", phase=Phase.start),
                event(seq=1, name="reproduce", phase=Phase.note, data={"phase": "end"}),
                event(seq=2, name="reproduce", phase=Phase.end, data={"red": 1}),
            ]
            later = first.after.model_copy(update={"seq": 3})
            await stores.store.commit(first._replace(events=said, after=later), fence)
            await stores.store.commit(commit(later, Step.plan, artifact='{"plan": 1}'), fence)
            asked = [record(CallPlace("run-1", 1, "patch", number)) for number in range(2)]
            for item in (*asked, record(CallPlace("run-1", 1, "test", 0))._replace(kind="sandbox")):
                await stores.journal.add(item, fence)
            (found,) = await past(stores.store)
            assert [found.row] == await stores.store.runs()
            assert found.ends == [said[2]]
            assert found.reproduced == ['{"report": 1}']
            assert found.answers == asked

        asyncio.run(scenario())

    def test_all_of_many_runs_are_told_once_the_oldest_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            # Many runs are created at the same time, so that a page ends between two of them.
            for number in range(MANY):
                moment = DAWN + timedelta(seconds=number // 300)
                run_id = f"run-{(number * 7) % MANY:03}" + (".1" if number % 5 == 0 else "")
                await stores.store.create(state(run_id=run_id), folder="", created=moment)
            found = [(item.row.created, item.row.run_id) for item in await past(stores.store)]
            assert len(set(found)) == MANY
            assert found == sorted(found)
            later = await past(stores.store, DAWN + timedelta(seconds=1))
            assert [item.row.run_id for item in later] == [name for _, name in found[300:]]
            assert await past(stores.store, DAWN + timedelta(days=1)) == []

        asyncio.run(scenario())

    def test_another_tenants_runs_are_not_told(self, stores: Stores) -> None:
        async def scenario() -> None:
            for tenant in ("home", "other"):
                mine = stores.of(tenant)
                now, fence = await begin(mine.store, spec=spec(tenant=tenant, goal=f"of {tenant}"))
                done = commit(now, Step.reproduce, artifact=f'"{tenant}"')
                await mine.store.commit(done, fence)
                await mine.journal.add(record(CallPlace("run-1", 1, "patch", 0), result=f'"{tenant}"'), fence)
            for tenant in ("home", "other"):
                (found,) = await past(stores.of(tenant).store)
                assert found.row.goal == f"of {tenant}"
                assert found.reproduced == [f'"{tenant}"']
                assert [answer.result for answer in found.answers] == [f'"{tenant}"']

        asyncio.run(scenario())
