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
from redstart.core.run_status import Control, DriveStop, RunHolder, RunRow
from redstart.ports.store.port.runs import Store
from redstart.testing.contracts.store import DAWN, Stores, begin
from redstart.testing.states import commit, make_spec, make_state

CHOSEN_OPTIONS = RunOptions(
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


async def get_row(store: Store) -> RunRow:
    (row,) = await store.list_runs()
    return row


class StandingContract:
    def test_row_reflects_the_last_commit(self, stores: Stores) -> None:
        async def scenario() -> None:
            goal = "make the total right " * 50
            new, fence = await begin(stores.store, spec=make_spec(mode=Mode.create, goal=goal))
            await stores.store.release("run-1", fence)
            row = RunRow("run-1", "create", Status.running, "", goal[:200], "shop", "/home/shop", DAWN, DAWN)
            assert (await get_row(stores.store))._replace(beat=0.0) == row

            stores.clock.time = (DAWN + timedelta(minutes=5)).timestamp()
            _, fence = await stores.store.claim("run-1")
            await stores.store.commit(commit(new, status=Status.finished, result=Result.verified), fence)
            await stores.store.release("run-1", fence)
            expected = row._replace(status=Status.finished, result="verified", updated=DAWN + timedelta(minutes=5))
            assert (await get_row(stores.store))._replace(beat=0.0) == expected

        asyncio.run(scenario())

    def test_lease_starts_with_the_claim_and_only_its_holder_renews_it(self, stores: Stores) -> None:
        async def scenario() -> None:
            stores.clock.time = 100.0
            _, stale = await begin(stores.store)
            _, fence = await stores.store.claim("run-1")
            row = await get_row(stores.store)
            assert (row.holder, row.beat) == (RunHolder(platform.node(), os.getpid()), 100.0)
            stores.clock.time = 200.0
            await stores.store.renew("run-1", stale)
            assert (await get_row(stores.store)).beat == 100.0
            await stores.store.renew("run-1", fence)
            assert (await get_row(stores.store)).beat == 200.0

        asyncio.run(scenario())

    def test_stop_reason_is_kept_until_the_run_is_claimed_again(self, stores: Stores) -> None:
        async def scenario() -> None:
            store, failed = stores.store, DriveStop(Status.failed, "the endpoint refuses the key")
            _, fence = await begin(store)
            await store.mark("run-1", DriveStop(Status.queued))
            assert (await get_row(store)).stop is None, "somebody drives it"
            await store.release("run-1", fence - 1, failed)
            assert (await get_row(store)).stop is None, "that one drives it no more"
            await store.release("run-1", fence, failed)
            assert (await get_row(store)).stop == failed
            await store.mark("run-1", DriveStop(Status.queued))
            assert (await get_row(store)).stop == DriveStop(Status.queued)
            await store.claim("run-1")
            assert (await get_row(store)).stop is None
            await store.mark("nobody", failed)

        asyncio.run(scenario())

    def test_last_control_request_is_kept(self, stores: Stores) -> None:
        async def scenario() -> None:
            await begin(stores.store)
            for control in (Control.pause, Control.cancel, Control.none):
                await stores.store.control("run-1", control)
                assert await stores.store.get_control("run-1") is control
                assert (await get_row(stores.store)).control is control
            with pytest.raises(StoreError, match="there is no run 'nobody'"):
                await stores.store.get_control("nobody")

        asyncio.run(scenario())

    def test_options_are_saved_and_replaced(self, stores: Stores) -> None:
        async def scenario() -> None:
            await stores.store.create(make_state(), folder="/home/shop", created=DAWN, options=CHOSEN_OPTIONS)
            assert (await get_row(stores.store)).options == CHOSEN_OPTIONS
            other = CHOSEN_OPTIONS.model_copy(update={"engine": "langgraph"})
            await stores.store.choose("run-1", other)
            assert (await get_row(stores.store)).options == other
            with pytest.raises(StoreError, match="there is no run 'nobody'"):
                await stores.store.choose("nobody", other)

        asyncio.run(scenario())
