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
from redstart.testing.states import commit, make_card, make_failure, make_signature, make_spec

BUG = make_signature()
SAME_KIND = make_signature(frame="bank/basket.py:Basket.total")
"""The same kind of bug in another place with similar names."""
REMOTE_KIND = make_signature(frame="mail/ledger.py:Ledger.sum")
"""The same kind of bug in another place with other names."""
ALIKE = make_signature(message="KeyError: 'prices'")
"""Another bug with almost the same text."""
UNRELATED = make_signature(exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean")


async def learn(
    stores: Stores,
    id: str,  # noqa: A002
    failure_signature: Signature = BUG,
    *,
    tenant: str = "home",
    repo: str = "shop",
    **overrides: Any,
) -> FixCard:
    """Save a card from a separate run, a minute after the previous one."""
    stores, stores.clock.time = stores.for_tenant(tenant), stores.clock.time + 60
    saved = make_card(id, failure_signature, signature=failure_signature, **overrides)
    new, fence = await begin(stores.store, f"run of {id}", spec=make_spec(tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(card=saved)), fence)
    return saved


async def recall_ids(
    stores: Stores, failure_signature: Signature = BUG, *, tenant: str = "home", repo: str = "shop", limit: int = 3
) -> str:
    recalled = await stores.for_tenant(tenant).memory.recall(failure_signature, tenant=tenant, repo=repo, limit=limit)
    return " ".join(item.card.id for item in recalled)


class MemoryContract(PatternsContract, FailuresContract):
    """The contract of every memory. Queries by other tenants are in `tests/contract/test_questions_of_others.py`."""

    def test_empty_memory_recalls_nothing(self, stores: Stores) -> None:
        assert asyncio.run(stores.memory.recall(BUG, tenant="home", repo="shop")) == []

    def test_fix_card_is_recalled_whole_with_its_reason(self, stores: Stores) -> None:
        async def scenario() -> None:
            same = await learn(stores, "same")
            kin = await learn(stores, "kin", SAME_KIND)
            await learn(stores, "stranger", UNRELATED)
            recalled = await stores.memory.recall(BUG, tenant="home", repo="shop")
            assert [(item.card, item.source) for item in recalled] == [(same, "signature"), (kin, "family")]
            assert recalled[0].score > recalled[1].score

        asyncio.run(scenario())

    def test_same_bug_ranks_before_its_family(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "same-elsewhere", repo="bank")
            await learn(stores, "kin", SAME_KIND)
            assert await recall_ids(stores) == "same-elsewhere kin"

        asyncio.run(scenario())

    def test_same_repo_ranks_first_then_newest(self, stores: Stores) -> None:
        async def scenario() -> None:
            for id, failure_signature, repo in (  # noqa: A001
                ("z-old", BUG, "shop"),
                ("new", BUG, "shop"),
                ("newest-elsewhere", BUG, "bank"),
                ("z-old-kin", SAME_KIND, "shop"),
                ("new-kin", SAME_KIND, "shop"),
                ("newest-kin-elsewhere", SAME_KIND, "bank"),
            ):
                await learn(stores, id, failure_signature, repo=repo)
            assert (
                await recall_ids(stores, limit=9) == "new z-old newest-elsewhere new-kin z-old-kin newest-kin-elsewhere"
            )

        asyncio.run(scenario())

    def test_limit_on_recalled_cards_is_respected(self, stores: Stores) -> None:
        async def scenario() -> None:
            for number in range(2):
                await learn(stores, f"same-{number}")
                await learn(stores, f"kin-{number}", SAME_KIND)
            assert await recall_ids(stores, limit=1) == "same-1"
            assert await recall_ids(stores, limit=2) == "same-1 same-0"
            assert await recall_ids(stores) == "same-1 same-0 kin-1"
            assert await recall_ids(stores, limit=0) == ""

        asyncio.run(scenario())

    def test_family_is_recalled_across_repos(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "kin", SAME_KIND, repo="bank")
            assert await recall_ids(stores, repo="shop") == "kin"

        asyncio.run(scenario())

    def test_dissimilar_bug_of_the_family_is_recalled_only_in_its_own_repo(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "remote", REMOTE_KIND, repo="mail")
            await learn(stores, "kin", SAME_KIND, repo="bank")
            assert await recall_ids(stores, repo="shop") == "kin"
            assert await recall_ids(stores, repo="mail") == "remote kin"

        asyncio.run(scenario())

    def test_wrong_value_is_recalled_elsewhere_only_by_its_signature(self, stores: Stores) -> None:
        wrong = make_signature(
            exception="AssertionError", message="assert 3 == 4", frame="tests/test_cart.py::test_sum"
        )
        moved = wrong.model_copy(update={"frame": "tests/test_cart.py::test_sums"})
        reworded = moved.model_copy(update={"message": "assert 3 == 5"})
        assert wrong.family == moved.family != reworded.family

        async def scenario() -> None:
            await learn(stores, "moved", moved, repo="bank")
            await learn(stores, "reworded", reworded, repo="bank")
            assert await recall_ids(stores, wrong, repo="shop") == ""
            assert await recall_ids(stores, wrong, repo="bank") == "moved reworded"
            await learn(stores, "same", wrong, repo="bank")
            assert await recall_ids(stores, wrong, repo="shop") == "same"

        asyncio.run(scenario())

    def test_cards_of_another_tenant_are_not_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "same", tenant="them")
            await learn(stores, "kin", SAME_KIND, tenant="them")
            assert await recall_ids(stores) == ""
            assert await recall_ids(stores, tenant="them") == "same kin"

        asyncio.run(scenario())

    def test_failed_attempt_leaves_no_card(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(failure=make_failure())), fence)
            assert await recall_ids(stores) == ""

        asyncio.run(scenario())

    def test_similar_text_ranks_last_and_unrelated_text_is_not_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "alike-elsewhere", ALIKE, repo="bank")
            await learn(stores, "alike", ALIKE)
            await learn(stores, "kin", SAME_KIND, repo="bank")
            await learn(stores, "stranger", UNRELATED)
            recalled = await stores.memory.recall(BUG, tenant="home", repo="shop", limit=9)
            assert [(item.card.id, item.source) for item in recalled] == [
                ("kin", "family"),
                ("alike", "likeness"),
                ("alike-elsewhere", "likeness"),
            ]
            assert 0.5 > recalled[1].score == recalled[2].score > 0.2
            assert await recall_ids(stores, limit=2) == "kin alike"

        asyncio.run(scenario())

    def test_most_similar_text_ranks_first_within_a_family(self, stores: Stores) -> None:
        async def scenario() -> None:
            for number in range(4):
                await learn(
                    stores, f"kin-{number}", make_signature(frame=f"mail/letter_{number}.py:Letter.send_{number}")
                )
            await learn(stores, "right", make_signature(frame="shop/cart.py:Cart.total_of"))
            for number in range(4, 8):
                await learn(
                    stores, f"kin-{number}", make_signature(frame=f"mail/letter_{number}.py:Letter.send_{number}")
                )
            assert await recall_ids(stores, limit=1) == "right"

        asyncio.run(scenario())

    def test_only_verified_cards_are_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await learn(stores, "refused", outcome="refused")
            await learn(stores, "refused-kin", SAME_KIND, outcome="refused")
            await learn(stores, "refused-alike", ALIKE, outcome="refused")
            assert await recall_ids(stores, limit=9) == ""

        asyncio.run(scenario())

    @pytest.mark.parametrize("result", list(Result))
    def test_cards_of_runs_that_end_unverified_are_not_recalled(self, stores: Stores, result: Result) -> None:
        async def scenario() -> None:
            await learn(stores, "other")
            stores.clock.time += 60
            new, fence = await begin(stores.store)
            step_commit = commit(new, Step.remember, remembered=NewMemories(card=make_card("green", signature=BUG)))
            await stores.store.commit(step_commit, fence)
            assert await recall_ids(stores) == "green other"
            await stores.store.commit(
                commit(step_commit.after, Step.decide, status=Status.finished, result=result), fence
            )
            assert await recall_ids(stores) == ("green other" if result is Result.verified else "other")

        asyncio.run(scenario())

    def test_old_cards_without_a_signature_field_are_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            old = make_card("old", BUG)
            assert old.signature is None
            new, fence = await begin(stores.store)
            await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(card=old)), fence)
            assert await recall_ids(stores) == "old"

        asyncio.run(scenario())
