"""What every memory does. Subclass it as `Test...` and give it the fixture `stores`."""

from __future__ import annotations

import asyncio

from redstart.core.learning import FixCard, Remembered, Signature
from redstart.core.run import Step
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import card, commit, failure, signature, spec

BUG = signature()
KIN = signature(frame="bank/ledger.py:Ledger.sum")
"""The same kind of bug, elsewhere."""
STRANGER = signature(exception="ValueError")


async def learn(stores: Stores, id: str, of: Signature = BUG, *, tenant: str = "home", repo: str = "shop") -> FixCard:  # noqa: A002
    """A card that a run of its own left, a minute after the one before."""
    stores, stores.clock.time = stores.of(tenant), stores.clock.time + 60
    left = card(id, of)
    new, fence = await begin(stores.store, f"run of {id}", spec=spec(tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=Remembered(card=left)), fence)
    return left


async def ids(stores: Stores, of: Signature = BUG, *, tenant: str = "home", repo: str = "shop", limit: int = 3) -> str:
    found = await stores.of(tenant).memory.recall(of, tenant=tenant, repo=repo, limit=limit)
    return " ".join(one.card.id for one in found)


class MemoryContract:
    def test_nothing_is_recalled_from_nothing(self, stores: Stores) -> None:
        assert asyncio.run(stores.memory.recall(BUG, tenant="home", repo="shop")) == []

    def test_a_card_comes_back_whole_with_its_reason(self, stores: Stores) -> None:
        async def scenario() -> None:
            same = await learn(stores, "same")
            kin = await learn(stores, "kin", KIN)
            await learn(stores, "stranger", STRANGER)
            found = await stores.memory.recall(BUG, tenant="home", repo="shop")
            assert [(one.card, one.source) for one in found] == [(same, "signature"), (kin, "family")]
            assert found[0].score > found[1].score

        asyncio.run(scenario())

    def test_this_bug_comes_before_its_kind(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "same-elsewhere", repo="bank")
            await learn(stores, "kin", KIN)
            assert await ids(stores) == "same-elsewhere kin"

        asyncio.run(scenario())

    def test_the_same_repo_comes_first_and_then_the_newest(self, stores: Stores) -> None:
        async def scenario() -> None:
            for id, of, repo in (  # noqa: A001
                ("z-old", BUG, "shop"),
                ("new", BUG, "shop"),
                ("newest-elsewhere", BUG, "bank"),
                ("z-old-kin", KIN, "shop"),
                ("new-kin", KIN, "shop"),
                ("newest-kin-elsewhere", KIN, "bank"),
            ):
                await learn(stores, id, of, repo=repo)
            assert await ids(stores, limit=9) == "new z-old newest-elsewhere new-kin z-old-kin newest-kin-elsewhere"

        asyncio.run(scenario())

    def test_no_more_than_the_limit(self, stores: Stores) -> None:
        async def scenario() -> None:
            for number in range(2):
                await learn(stores, f"same-{number}")
                await learn(stores, f"kin-{number}", KIN)
            assert await ids(stores, limit=1) == "same-1"
            assert await ids(stores, limit=2) == "same-1 same-0"
            assert await ids(stores) == "same-1 same-0 kin-1"
            assert await ids(stores, limit=0) == ""

        asyncio.run(scenario())

    def test_the_kind_is_known_in_any_repo(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "kin", KIN, repo="bank")
            assert await ids(stores, repo="shop") == "kin"

        asyncio.run(scenario())

    def test_never_another_tenants(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "same", tenant="them")
            await learn(stores, "kin", KIN, tenant="them")
            assert await ids(stores) == ""
            assert await ids(stores, tenant="them") == "same kin"

        asyncio.run(scenario())

    def test_what_failed_is_no_card(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            await stores.store.commit(commit(new, Step.remember, remembered=Remembered(failure=failure())), fence)
            assert await ids(stores) == ""

        asyncio.run(scenario())
