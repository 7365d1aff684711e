"""The contract of reading many past runs. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from redstart.core.events import Phase
from redstart.core.run import Step
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.runs import PastRun, Store
from redstart.testing.contracts.store import DAWN, Stores, begin
from redstart.testing.states import commit, make_event, make_spec, make_state, record

RUN_COUNT = 450
"""More runs than are read in one page."""


async def load_past_runs(store: Store, since: datetime | None = None) -> list[PastRun]:
    return [item async for item in store.iter_past_runs(since)]


class PastContract:
    def test_past_run_includes_step_ends_reproduction_and_answers(self, stores: Stores) -> None:
        async def scenario() -> None:
            current, fence = await begin(stores.store)
            first = commit(current, Step.reproduce, artifact='{"report": 1}')
            recorded_events = [
                make_event(seq=0, name="reproduce", phase=Phase.start),
                make_event(seq=1, name="reproduce", phase=Phase.note, data={"phase": "end"}),
                make_event(seq=2, name="reproduce", phase=Phase.end, data={"red": 1}),
            ]
            updated = first.after.model_copy(update={"seq": 3})
            await stores.store.commit(first._replace(events=recorded_events, after=updated), fence)
            await stores.store.commit(commit(updated, Step.plan, artifact='{"plan": 1}'), fence)
            records = [record(CallPlace("run-1", 1, "patch", number)) for number in range(2)]
            for item in (*records, record(CallPlace("run-1", 1, "test", 0))._replace(kind="sandbox")):
                await stores.journal.add(item, fence)
            (past_run,) = await load_past_runs(stores.store)
            assert [past_run.row] == await stores.store.list_runs()
            assert past_run.ends == [recorded_events[2]]
            assert past_run.reproduced == ['{"report": 1}']
            assert past_run.answers == records

        asyncio.run(scenario())

    def test_all_past_runs_are_listed_once_oldest_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            # Many runs are created at the same time, so that a page ends between two of them.
            for number in range(RUN_COUNT):
                moment = DAWN + timedelta(seconds=number // 300)
                run_id = f"run-{(number * 7) % RUN_COUNT:03}" + (".1" if number % 5 == 0 else "")
                await stores.store.create(make_state(run_id=run_id), folder="", created=moment)
            loaded = [(item.row.created, item.row.run_id) for item in await load_past_runs(stores.store)]
            assert len(set(loaded)) == RUN_COUNT
            assert loaded == sorted(loaded)
            recent = await load_past_runs(stores.store, DAWN + timedelta(seconds=1))
            assert [item.row.run_id for item in recent] == [name for _, name in loaded[300:]]
            assert await load_past_runs(stores.store, DAWN + timedelta(days=1)) == []

        asyncio.run(scenario())

    def test_past_runs_of_another_tenant_are_not_listed(self, stores: Stores) -> None:
        async def scenario() -> None:
            for tenant in ("home", "other"):
                tenant_stores = stores.for_tenant(tenant)
                current, fence = await begin(tenant_stores.store, spec=make_spec(tenant=tenant, goal=f"of {tenant}"))
                step_commit = commit(current, Step.reproduce, artifact=f'"{tenant}"')
                await tenant_stores.store.commit(step_commit, fence)
                await tenant_stores.journal.add(record(CallPlace("run-1", 1, "patch", 0), result=f'"{tenant}"'), fence)
            for tenant in ("home", "other"):
                (past_run,) = await load_past_runs(stores.for_tenant(tenant).store)
                assert past_run.row.goal == f"of {tenant}"
                assert past_run.reproduced == [f'"{tenant}"']
                assert [answer.result for answer in past_run.answers] == [f'"{tenant}"']

        asyncio.run(scenario())
