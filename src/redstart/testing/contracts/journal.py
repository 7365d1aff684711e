"""The contract of every journal. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio

import pytest

from redstart.core.errors import Fenced, StoreError
from redstart.ports.store.port.journal import CallPlace
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import record


class JournalContract:
    def test_added_record_can_be_found(self, stores: Stores) -> None:
        async def scenario() -> None:
            _, fence = await begin(stores.store)
            call = CallPlace("run-1", 1, "patch", 0)
            assert await stores.journal.list_step(call) == []
            later_call = call._replace(ordinal=1)
            await stores.journal.add(record(later_call), fence)
            await stores.journal.add(record(call), fence)
            assert await stores.journal.list_step(call) == [record(call), record(later_call)]
            for other in (call._replace(run_id="run-2"), call._replace(attempt=2), call._replace(step="plan")):
                assert await stores.journal.list_step(other) == []

        asyncio.run(scenario())

    def test_call_is_recorded_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            _, fence = await begin(stores.store)
            call = CallPlace("run-1", 1, "patch", 0)
            await stores.journal.add(record(call), fence)
            with pytest.raises(StoreError) as caught:
                await stores.journal.add(record(call, result="other"), fence)
            assert not isinstance(caught.value, Fenced)
            assert await stores.journal.list_records("run-1") == [record(call)]

        asyncio.run(scenario())

    def test_records_are_sorted_by_attempt_then_write_order(self, stores: Stores) -> None:
        async def scenario() -> None:
            _, fence = await begin(stores.store)
            _, other_fence = await begin(stores.store, "run-2")
            positions = [(2, "patch", 0), (1, "test", 1), (1, "test", 0), (2, "apply", 0), (1, "plan", 0)]
            for place in positions:
                await stores.journal.add(record(CallPlace("run-1", *place)), fence)
                await stores.journal.add(record(CallPlace("run-2", *place)), other_fence)
            expected = [(1, "test", 1), (1, "test", 0), (1, "plan", 0), (2, "patch", 0), (2, "apply", 0)]
            assert await stores.journal.list_records("run-1") == [
                record(CallPlace("run-1", *place)) for place in expected
            ]
            assert await stores.journal.list_records("nobody") == []

        asyncio.run(scenario())

    def test_discard_removes_the_rest_of_the_step(self, stores: Stores) -> None:
        async def scenario() -> None:
            _, fence = await begin(stores.store)
            _, other_fence = await begin(stores.store, "run-2")
            remaining = [
                CallPlace("run-1", 1, "patch", 0),
                CallPlace("run-1", 1, "test", 5),
                CallPlace("run-1", 2, "patch", 5),
            ]
            discarded = [CallPlace("run-1", 1, "patch", ordinal) for ordinal in (1, 2, 10)]
            for call in (*remaining, *discarded):
                await stores.journal.add(record(call), fence)
            await stores.journal.add(record(CallPlace("run-2", 1, "patch", 2)), other_fence)

            assert await stores.journal.discard(discarded[0], fence) == 3
            assert await stores.journal.discard(discarded[0], fence) == 0
            assert {item.call for item in await stores.journal.list_records("run-1")} == set(remaining)
            assert len(await stores.journal.list_records("run-2")) == 1

            await stores.journal.add(record(discarded[0], result="anew"), fence)
            assert [
                item.result for item in await stores.journal.list_records("run-1") if item.call == discarded[0]
            ] == ["anew"]
            assert [item.call for item in await stores.journal.list_records("run-1")] == [
                *remaining[:2],
                discarded[0],
                remaining[2],
            ]

        asyncio.run(scenario())

    def test_stale_driver_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            _, stale = await begin(stores.store)
            call = CallPlace("run-1", 1, "patch", 0)
            await stores.journal.add(record(call), stale)
            _, fence = await stores.store.claim("run-1")
            with pytest.raises(Fenced):
                await stores.journal.add(record(call._replace(ordinal=1)), stale)
            with pytest.raises(Fenced):
                await stores.journal.add(record(call), stale)
            with pytest.raises(Fenced):
                await stores.journal.discard(call, stale)
            assert await stores.journal.list_records("run-1") == [record(call)]
            await stores.journal.add(record(call._replace(ordinal=1)), fence)

        asyncio.run(scenario())

    def test_unknown_run_has_no_journal(self, stores: Stores) -> None:
        async def scenario() -> None:
            call = CallPlace("nobody", 1, "patch", 0)
            with pytest.raises(Fenced):
                await stores.journal.add(record(call), 0)
            with pytest.raises(Fenced):
                await stores.journal.discard(call, 0)

        asyncio.run(scenario())
