"""The contract of separate tenants in every store. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio

import pytest

from redstart.core.errors import Fenced, StoreError
from redstart.core.learning import NewMemories
from redstart.core.run import Step
from redstart.core.standing import Control
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import DAWN, Stores, begin, trace
from redstart.testing.states import card, commit, record, signature, spec, state


class TenantContract:
    def test_a_run_of_another_tenant_is_unknown(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            await stores.store.commit(commit(new), fence)
            await stores.journal.add(record(CallPlace("run-1", 1, "patch", 0)), fence)
            await stores.store.tell("run-1", PersonWord.say, "hello", version=0)
            before = await trace(stores.store)
            others = stores.of("other")
            theirs = others.store
            for call in (theirs.load, theirs.first, theirs.claim):
                with pytest.raises(StoreError, match="no run"):
                    await call("run-1")
            for write in (
                theirs.control("run-1", Control.cancel),
                theirs.tell("run-1", PersonWord.say, "no", version=0),
            ):
                with pytest.raises(StoreError):
                    await write
            await theirs.release("run-1", fence)
            assert await theirs.holder("run-1") is None
            assert (
                await theirs.runs() == await theirs.runs(prefix="run") == await theirs.runs(folder="/home/shop") == []
            )
            assert await theirs.steps("run-1") == await theirs.events("run-1") == await theirs.told("run-1") == []
            assert await others.journal.records("run-1") == []
            assert await others.journal.find(CallPlace("run-1", 1, "patch", 0)) is None
            assert await trace(stores.store) == before
            assert await stores.store.holder("run-1") is not None

        asyncio.run(scenario())

    def test_another_tenant_cannot_write_with_the_right_fence(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            before = await trace(stores.store)
            others = stores.of("other")
            with pytest.raises(Fenced):
                await others.store.commit(commit(new), fence)
            with pytest.raises(Fenced):
                await others.journal.add(record(CallPlace("run-1", 1, "patch", 0)), fence)
            with pytest.raises(Fenced):
                await others.journal.discard(CallPlace("run-1", 1, "patch", 0), fence)
            assert await trace(stores.store) == before
            assert await stores.journal.records("run-1") == []

        asyncio.run(scenario())

    def test_two_tenants_may_have_runs_and_cards_of_one_name(self, stores: Stores) -> None:
        async def scenario() -> None:
            for tenant, attempts in (("home", 1), ("other", 2)):
                mine = stores.of(tenant)
                now, fence = await begin(mine.store, spec=spec(tenant=tenant, goal=f"of {tenant}"))
                assert fence == 1
                for number in range(attempts):
                    done = commit(now, Step.remember, remembered=NewMemories(card=card(summary=f"of {tenant}")))
                    await mine.journal.add(record(CallPlace("run-1", 1, "patch", number), result=f'"{tenant}"'), fence)
                    await mine.store.commit(done, fence)
                    now = done.after
            for tenant, attempts in (("home", 1), ("other", 2)):
                mine = stores.of(tenant)
                assert (await mine.store.load("run-1")).spec.goal == f"of {tenant}"
                assert len(await mine.store.steps("run-1")) == attempts
                assert {item.result for item in await mine.journal.records("run-1")} == {f'"{tenant}"'}
                found = await mine.memory.recall(signature(), tenant=tenant, repo="shop")
                assert [item.card.summary for item in found] == [f"of {tenant}"]

        asyncio.run(scenario())

    def test_a_store_keeps_no_run_of_another_tenant(self, stores: Stores) -> None:
        async def scenario() -> None:
            with pytest.raises(StoreError, match="tenant"):
                await stores.store.create(state(spec=spec(tenant="other")), folder="", created=DAWN)
            assert await stores.store.runs() == await stores.of("other").store.runs() == []

        asyncio.run(scenario())
