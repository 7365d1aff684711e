"""The contract of every memory. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redstart.core.learning import FixCard, NewMemories, Signature
from redstart.core.run import Result, Status, Step
from redstart.testing.contracts.failures import FailuresContract
from redstart.testing.contracts.patterns import PatternsContract
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import card, commit, failure, signature, spec

BUG = signature()
KIN = signature(frame="bank/ledger.py:Ledger.sum")
"""The same kind of bug in another place."""
ALIKE = signature(message="KeyError: 'prices'")
"""Another bug with almost the same text."""
STRANGER = signature(exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean")


async def learn(
    stores: Stores,
    id: str,  # noqa: A002
    of: Signature = BUG,
    *,
    tenant: str = "home",
    repo: str = "shop",
    **over: Any,
) -> FixCard:
    """Save a card from a separate run, a minute after the previous one."""
    stores, stores.clock.time = stores.of(tenant), stores.clock.time + 60
    left = card(id, of, signature=of, **over)
    new, fence = await begin(stores.store, f"run of {id}", spec=spec(tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(card=left)), fence)
    return left


async def ids(stores: Stores, of: Signature = BUG, *, tenant: str = "home", repo: str = "shop", limit: int = 3) -> str:
    found = await stores.of(tenant).memory.recall(of, tenant=tenant, repo=repo, limit=limit)
    return " ".join(item.card.id for item in found)


class MemoryContract(PatternsContract, FailuresContract):
    """The contract of every memory. Queries by other tenants are in `tests/contract/test_questions_of_others.py`."""

    def test_nothing_is_recalled_from_nothing(self, stores: Stores) -> None:
        assert asyncio.run(stores.memory.recall(BUG, tenant="home", repo="shop")) == []

    def test_a_card_comes_back_whole_with_its_reason(self, stores: Stores) -> None:
        async def scenario() -> None:
            same = await learn(stores, "same")
            kin = await learn(stores, "kin", KIN)
            await learn(stores, "stranger", STRANGER)
            found = await stores.memory.recall(BUG, tenant="home", repo="shop")
            assert [(item.card, item.source) for item in found] == [(same, "signature"), (kin, "family")]
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
            await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(failure=failure())), fence)
            assert await ids(stores) == ""

        asyncio.run(scenario())

    def test_what_is_told_in_like_words_comes_last_and_what_is_strange_never(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "alike-elsewhere", ALIKE, repo="bank")
            await learn(stores, "alike", ALIKE)
            await learn(stores, "kin", KIN, repo="bank")
            await learn(stores, "stranger", STRANGER)
            found = await stores.memory.recall(BUG, tenant="home", repo="shop", limit=9)
            assert [(item.card.id, item.source) for item in found] == [
                ("kin", "family"),
                ("alike", "likeness"),
                ("alike-elsewhere", "likeness"),
            ]
            assert 0.5 > found[1].score == found[2].score > 0.2
            assert await ids(stores, limit=2) == "kin alike"

        asyncio.run(scenario())

    def test_of_many_of_one_kind_the_one_in_like_words_comes_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            for number in range(4):
                await learn(stores, f"kin-{number}", signature(frame=f"mail/letter_{number}.py:Letter.send_{number}"))
            await learn(stores, "right", signature(frame="shop/cart.py:Cart.total_of"))
            for number in range(4, 8):
                await learn(stores, f"kin-{number}", signature(frame=f"mail/letter_{number}.py:Letter.send_{number}"))
            assert await ids(stores, limit=1) == "right"

        asyncio.run(scenario())

    def test_only_what_was_verified_is_shown(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "refused", outcome="refused")
            await learn(stores, "refused-kin", KIN, outcome="refused")
            await learn(stores, "refused-alike", ALIKE, outcome="refused")
            assert await ids(stores, limit=9) == ""

        asyncio.run(scenario())

    @pytest.mark.parametrize("result", list(Result))
    def test_the_cards_of_a_run_that_is_not_verified_in_the_end_are_not_shown(
        self, stores: Stores, result: Result
    ) -> None:
        async def scenario() -> None:
            await learn(stores, "other")
            stores.clock.time += 60
            new, fence = await begin(stores.store)
            green = commit(new, Step.remember, remembered=NewMemories(card=card("green", signature=BUG)))
            await stores.store.commit(green, fence)
            assert await ids(stores) == "green other"
            await stores.store.commit(commit(green.after, Step.decide, status=Status.finished, result=result), fence)
            assert await ids(stores) == ("green other" if result is Result.verified else "other")

        asyncio.run(scenario())

    def test_cards_of_before_are_found_by_their_signature(self, stores: Stores) -> None:
        async def scenario() -> None:
            old = card("old", BUG)
            assert old.signature is None
            new, fence = await begin(stores.store)
            await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(card=old)), fence)
            assert await ids(stores) == "old"

        asyncio.run(scenario())
