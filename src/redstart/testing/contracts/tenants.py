"""The contract of separate tenants in every store. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio

import pytest

from redstart.core.errors import Fenced, StoreError
from redstart.core.learning import NewMemories
from redstart.core.run import Step
from redstart.core.run_status import Control
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import DAWN, Stores, begin, trace
from redstart.testing.states import commit, make_card, make_signature, make_spec, make_state, record


class TenantContract:
    def test_run_of_another_tenant_is_unknown(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            await stores.store.commit(commit(new), fence)
            await stores.journal.add(record(CallPlace("run-1", 1, "patch", 0)), fence)
            await stores.store.send_message("run-1", PersonWord.say, "hello", version=0)
            before = await trace(stores.store)
            other_tenant = stores.for_tenant("other")
            store = other_tenant.store
            for call in (store.load, store.load_first, store.claim):
                with pytest.raises(StoreError, match="no run"):
                    await call("run-1")
            for write in (
                store.control("run-1", Control.cancel),
                store.send_message("run-1", PersonWord.say, "no", version=0),
            ):
                with pytest.raises(StoreError):
                    await write
            await store.release("run-1", fence)
            assert await store.get_holder("run-1") is None
            assert (
                await store.list_runs()
                == await store.list_runs(prefix="run")
                == await store.list_runs(folder="/home/shop")
                == []
            )
            assert (
                await store.list_steps("run-1")
                == await store.list_events("run-1")
                == await store.list_messages("run-1")
                == []
            )
            assert await other_tenant.journal.list_records("run-1") == []
            assert await other_tenant.journal.list_step(CallPlace("run-1", 1, "patch", 0)) == []
            assert await trace(stores.store) == before
            assert await stores.store.get_holder("run-1") is not None

        asyncio.run(scenario())

    def test_another_tenant_cannot_write_even_with_the_right_fence(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            before = await trace(stores.store)
            other_tenant = stores.for_tenant("other")
            with pytest.raises(Fenced):
                await other_tenant.store.commit(commit(new), fence)
            with pytest.raises(Fenced):
                await other_tenant.journal.add(record(CallPlace("run-1", 1, "patch", 0)), fence)
            with pytest.raises(Fenced):
                await other_tenant.journal.discard(CallPlace("run-1", 1, "patch", 0), fence)
            assert await trace(stores.store) == before
            assert await stores.journal.list_records("run-1") == []

        asyncio.run(scenario())

    def test_two_tenants_may_use_the_same_run_and_card_ids(self, stores: Stores) -> None:
        async def scenario() -> None:
            for tenant, attempts in (("home", 1), ("other", 2)):
                tenant_stores = stores.for_tenant(tenant)
                current, fence = await begin(tenant_stores.store, spec=make_spec(tenant=tenant, goal=f"of {tenant}"))
                assert fence == 1
                for number in range(attempts):
                    step_commit = commit(
                        current, Step.remember, remembered=NewMemories(card=make_card(summary=f"of {tenant}"))
                    )
                    await tenant_stores.journal.add(
                        record(CallPlace("run-1", 1, "patch", number), result=f'"{tenant}"'), fence
                    )
                    await tenant_stores.store.commit(step_commit, fence)
                    current = step_commit.after
            for tenant, attempts in (("home", 1), ("other", 2)):
                tenant_stores = stores.for_tenant(tenant)
                assert (await tenant_stores.store.load("run-1")).spec.goal == f"of {tenant}"
                assert len(await tenant_stores.store.list_steps("run-1")) == attempts
                assert {item.result for item in await tenant_stores.journal.list_records("run-1")} == {f'"{tenant}"'}
                recalled = await tenant_stores.memory.recall(make_signature(), tenant=tenant, repo="shop")
                assert [item.card.summary for item in recalled] == [f"of {tenant}"]

        asyncio.run(scenario())

    def test_store_rejects_a_run_of_another_tenant(self, stores: Stores) -> None:
        async def scenario() -> None:
            with pytest.raises(StoreError, match="tenant"):
                await stores.store.create(make_state(spec=make_spec(tenant="other")), folder="", created=DAWN)
            assert await stores.store.list_runs() == await stores.for_tenant("other").store.list_runs() == []

        asyncio.run(scenario())
