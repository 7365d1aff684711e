"""The contract of failed attempts, a part of the contract of every memory."""

from __future__ import annotations

import asyncio
from typing import Any

from redstart.core.failures import FailureQuery
from redstart.core.learning import FailureRecord, NewMemories, Signature
from redstart.core.run import Step
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import commit, failure, signature, spec

BUG = signature()
KIN = signature(frame="bank/ledger.py:Ledger.sum")
"""The same kind of bug in another place."""
STRANGER = signature(exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean")
TEST = "tests/test_cart.py::test_total"


async def fail(
    stores: Stores,
    id: str,  # noqa: A002
    of: Signature = BUG,
    *,
    tenant: str = "home",
    repo: str = "shop",
    **over: Any,
) -> FailureRecord:
    """Save a failed attempt of a separate run, a minute after the previous one."""
    stores, stores.clock.time = stores.of(tenant), stores.clock.time + 60
    left = failure(id, of, **{"patch": f"patch of {id}", "provenance": {"run": f"run of {id}"}, **over})
    new, fence = await begin(stores.store, f"run of {id}", spec=spec(tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(failure=left)), fence)
    return left


async def failed(
    stores: Stores,
    *signatures: Signature,
    test_id: str = "",
    without: tuple[str, ...] = (),
    tenant: str = "home",
    repo: str = "shop",
    limit: int = 3,
) -> str:
    """Recall failed attempts and return their IDs."""
    query = FailureQuery(signatures=signatures or (BUG,), test_id=test_id, without=without)
    found = await stores.of(tenant).memory.failures(query, tenant=tenant, repo=repo, limit=limit)
    return " ".join(item.record.id for item in found)


class FailuresContract:
    def test_no_failed_attempt_is_recalled_from_nothing(self, stores: Stores) -> None:
        assert asyncio.run(failed(stores)) == ""

    def test_a_failed_attempt_comes_back_whole_with_its_reason(self, stores: Stores) -> None:
        async def scenario() -> None:
            left = await fail(stores, "same", tried="a default", change="-a\\n+b", root_cause="none", files=("a.py",))
            await fail(stores, "stranger", STRANGER)
            query = FailureQuery(signatures=(BUG,))
            (one,) = await stores.memory.failures(query, tenant="home", repo="shop")
            assert (one.record, one.repo, one.source) == (left, "shop", "signature")

        asyncio.run(scenario())

    def test_those_of_the_same_repo_and_the_newest_come_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "old")
            await fail(stores, "new")
            await fail(stores, "elsewhere", repo="bank")
            assert await failed(stores) == "new old elsewhere"
            assert await failed(stores, limit=1) == "new"

        asyncio.run(scenario())

    def test_a_like_failure_counts_in_the_same_test_of_the_same_repo_alone(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "kin", KIN, test_id=TEST)
            await fail(stores, "other_test", KIN, test_id="tests/test_cart.py::test_other")
            await fail(stores, "other_repo", KIN, test_id=TEST, repo="bank")
            assert await failed(stores) == ""
            assert await failed(stores, test_id=TEST) == "kin"

        asyncio.run(scenario())

    def test_it_is_asked_by_several_failures_at_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "first")
            await fail(stores, "then", STRANGER)
            assert await failed(stores, BUG, STRANGER) == "then first"

        asyncio.run(scenario())

    def test_the_same_patch_is_told_once_and_own_runs_not_at_all(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "once", patch="p")
            await fail(stores, "again", patch="p")
            await fail(stores, "own", patch="q")
            assert await failed(stores, without=("run of own",)) == "again"

        asyncio.run(scenario())

    def test_no_tenant_is_told_what_failed_for_another(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "theirs", tenant="them")
            assert await failed(stores) == ""
            assert await failed(stores, tenant="them") == "theirs"

        asyncio.run(scenario())
