"""The contract of a store's run rows: states, leases, stops and chosen options."""

from __future__ import annotations

import asyncio
import os
import platform
from datetime import timedelta

import pytest

from redstart.core.errors import StoreError
from redstart.core.run import Mode, Result, Status
from redstart.core.run_options import ChosenEndpoint, ChosenModels, RunOptions
from redstart.core.standing import Control, DriveStop, RunHolder, RunRow
from redstart.ports.store.port.runs import Store
from redstart.testing.contracts.store import DAWN, Stores, begin
from redstart.testing.states import commit, spec, state

CHOSEN = RunOptions(
    models=ChosenModels(
        strong="openai:a",
        fast="manual",
        fallback=("ollama:b",),
        steps={"plan": "fast"},
        endpoints={"openai:a": ChosenEndpoint(base_url="https://proxy/v1", key_variable="PROXY_KEY")},
    ),
    sandbox="docker",
    image="mine",
    unsafe=True,
    engine="inline",
    patch="/home/shop/fix.patch",
)


async def row_of(store: Store) -> RunRow:
    (row,) = await store.runs()
    return row


class StandingContract:
    def test_a_row_says_what_was_committed_last(self, stores: Stores) -> None:
        async def scenario() -> None:
            goal = "make the total right " * 50
            new, fence = await begin(stores.store, spec=spec(mode=Mode.create, goal=goal))
            await stores.store.release("run-1", fence)
            row = RunRow("run-1", "create", Status.running, "", goal[:200], "shop", "/home/shop", DAWN, DAWN)
            assert (await row_of(stores.store))._replace(beat=0.0) == row

            stores.clock.time = (DAWN + timedelta(minutes=5)).timestamp()
            _, fence = await stores.store.claim("run-1")
            await stores.store.commit(commit(new, status=Status.finished, result=Result.verified), fence)
            await stores.store.release("run-1", fence)
            ended = row._replace(status=Status.finished, result="verified", updated=DAWN + timedelta(minutes=5))
            assert (await row_of(stores.store))._replace(beat=0.0) == ended

        asyncio.run(scenario())

    def test_a_lease_begins_with_the_claim_and_only_its_holder_renews_it(self, stores: Stores) -> None:
        async def scenario() -> None:
            stores.clock.time = 100.0
            _, stale = await begin(stores.store)
            _, fence = await stores.store.claim("run-1")
            held = await row_of(stores.store)
            assert (held.holder, held.beat) == (RunHolder(platform.node(), os.getpid()), 100.0)
            stores.clock.time = 200.0
            await stores.store.renew("run-1", stale)
            assert (await row_of(stores.store)).beat == 100.0
            await stores.store.renew("run-1", fence)
            assert (await row_of(stores.store)).beat == 200.0

        asyncio.run(scenario())

    def test_how_a_drive_stopped_is_known_until_the_run_is_claimed_again(self, stores: Stores) -> None:
        async def scenario() -> None:
            store, failed = stores.store, DriveStop(Status.failed, "the endpoint refuses the key")
            _, fence = await begin(store)
            await store.mark("run-1", DriveStop(Status.queued))
            assert (await row_of(store)).stop is None, "somebody drives it"
            await store.release("run-1", fence - 1, failed)
            assert (await row_of(store)).stop is None, "that one drives it no more"
            await store.release("run-1", fence, failed)
            assert (await row_of(store)).stop == failed
            await store.mark("run-1", DriveStop(Status.queued))
            assert (await row_of(store)).stop == DriveStop(Status.queued)
            await store.claim("run-1")
            assert (await row_of(store)).stop is None
            await store.mark("nobody", failed)

        asyncio.run(scenario())

    def test_what_a_person_asked_last_is_known(self, stores: Stores) -> None:
        async def scenario() -> None:
            await begin(stores.store)
            for control in (Control.pause, Control.cancel, Control.none):
                await stores.store.control("run-1", control)
                assert await stores.store.asked("run-1") is control
                assert (await row_of(stores.store)).control is control
            with pytest.raises(StoreError, match="there is no run nobody"):
                await stores.store.asked("nobody")

        asyncio.run(scenario())

    def test_options_are_kept_and_replaced(self, stores: Stores) -> None:
        async def scenario() -> None:
            await stores.store.create(state(), folder="/home/shop", created=DAWN, options=CHOSEN)
            assert (await row_of(stores.store)).options == CHOSEN
            other = CHOSEN.model_copy(update={"engine": "langgraph"})
            await stores.store.choose("run-1", other)
            assert (await row_of(stores.store)).options == other
            with pytest.raises(StoreError, match="there is no run nobody"):
                await stores.store.choose("nobody", other)

        asyncio.run(scenario())
