"""The contract of failed attempts, a part of the contract of every memory."""

from __future__ import annotations

import asyncio
from typing import Any

from redstart.core.failures import FailureQuery
from redstart.core.learning import FailureRecord, NewMemories, Signature
from redstart.core.run import Step
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import commit, make_failure, make_signature, make_spec

BUG = make_signature()
SAME_KIND = make_signature(frame="bank/ledger.py:Ledger.sum")
"""The same kind of bug in another place."""
UNRELATED = make_signature(exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean")
TEST = "tests/test_cart.py::test_total"


async def fail(
    stores: Stores,
    id: str,  # noqa: A002
    failure_signature: Signature = BUG,
    *,
    tenant: str = "home",
    repo: str = "shop",
    **overrides: Any,
) -> FailureRecord:
    """Save a failed attempt of a separate run, a minute after the previous one."""
    stores, stores.clock.time = stores.for_tenant(tenant), stores.clock.time + 60
    record = make_failure(
        id, failure_signature, **{"patch": f"patch of {id}", "provenance": {"run": f"run of {id}"}, **overrides}
    )
    new, fence = await begin(stores.store, f"run of {id}", spec=make_spec(tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(failure=record)), fence)
    return record


async def recall_failures(
    stores: Stores,
    *signatures: Signature,
    test_id: str = "",
    excluded_runs: tuple[str, ...] = (),
    tenant: str = "home",
    repo: str = "shop",
    limit: int = 3,
) -> str:
    """Recall failed attempts and return their IDs."""
    query = FailureQuery(signatures=signatures or (BUG,), test_id=test_id, without=excluded_runs)
    failures = await stores.for_tenant(tenant).memory.recall_failures(query, tenant=tenant, repo=repo, limit=limit)
    return " ".join(item.record.id for item in failures)


class FailuresContract:
    def test_empty_memory_recalls_no_failed_attempt(self, stores: Stores) -> None:
        assert asyncio.run(recall_failures(stores)) == ""

    def test_failed_attempt_is_recalled_whole_with_its_reason(self, stores: Stores) -> None:
        async def scenario() -> None:
            saved = await fail(stores, "same", tried="a default", change="-a\\n+b", root_cause="none", files=("a.py",))
            await fail(stores, "stranger", UNRELATED)
            query = FailureQuery(signatures=(BUG,))
            (recalled,) = await stores.memory.recall_failures(query, tenant="home", repo="shop")
            assert (recalled.record, recalled.repo, recalled.source) == (saved, "shop", "signature")

        asyncio.run(scenario())

    def test_failures_of_the_same_repo_rank_first_then_newest(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "old")
            await fail(stores, "new")
            await fail(stores, "elsewhere", repo="bank")
            assert await recall_failures(stores) == "new old elsewhere"
            assert await recall_failures(stores, limit=1) == "new"

        asyncio.run(scenario())

    def test_similar_failure_matches_only_the_same_test_in_the_same_repo(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "kin", SAME_KIND, test_id=TEST)
            await fail(stores, "other_test", SAME_KIND, test_id="tests/test_cart.py::test_other")
            await fail(stores, "other_repo", SAME_KIND, test_id=TEST, repo="bank")
            assert await recall_failures(stores) == ""
            assert await recall_failures(stores, test_id=TEST) == "kin"

        asyncio.run(scenario())

    def test_query_accepts_several_failure_signatures(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "first")
            await fail(stores, "then", UNRELATED)
            assert await recall_failures(stores, BUG, UNRELATED) == "then first"

        asyncio.run(scenario())

    def test_duplicate_patches_and_own_runs_are_not_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "once", patch="p")
            await fail(stores, "again", patch="p")
            await fail(stores, "own", patch="q")
            assert await recall_failures(stores, excluded_runs=("run of own",)) == "again"

        asyncio.run(scenario())

    def test_failed_attempts_are_separate_by_tenant(self, stores: Stores) -> None:
        async def scenario() -> None:
            await fail(stores, "theirs", tenant="them")
            assert await recall_failures(stores) == ""
            assert await recall_failures(stores, tenant="them") == "theirs"

        asyncio.run(scenario())
