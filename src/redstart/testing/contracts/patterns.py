"""The contract of patterns, a part of the contract of every memory."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from redstart.core.learning import NewMemories
from redstart.core.pattern import SolutionPattern
from redstart.core.run import Mode, Result, Status, Step
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import commit, make_pattern, make_spec

SORTER = "A command line tool that sorts a CSV file by a column."
ALIKE = "Sort CSV files by one of their columns, on the command line"
FARTHER = "A library that reads a column of a CSV file and sums it"
UNRELATED = "A snake game for the terminal, with a table of the best players"


async def reach(
    stores: Stores,
    id: str,  # noqa: A002
    goal: str = SORTER,
    *,
    tenant: str = "home",
    repo: str = "shop",
    **overrides: Any,
) -> SolutionPattern:
    """Save a pattern from a separate run, a minute after the previous one."""
    stores, stores.clock.time = stores.for_tenant(tenant), stores.clock.time + 60
    saved = make_pattern(id, goal=goal, **overrides)
    new, fence = await begin(stores.store, f"run of {id}", spec=make_spec(mode=Mode.create, tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(pattern=saved)), fence)
    return saved


async def recall_ids(
    stores: Stores, goal: str = SORTER, *, tenant: str = "home", repo: str = "shop", limit: int = 3
) -> str:
    """Recall patterns and return their IDs."""
    recalled = await stores.for_tenant(tenant).memory.recall_patterns(goal, tenant=tenant, repo=repo, limit=limit)
    return " ".join(item.pattern.id for item in recalled)


class PatternsContract:
    other_tenant_queries = 100
    """The number of queries by other tenants."""

    def test_empty_memory_recalls_no_pattern(self, stores: Stores) -> None:
        assert asyncio.run(recall_ids(stores)) == ""

    def test_pattern_is_recalled_whole_with_its_similarity(self, stores: Stores) -> None:
        async def scenario() -> None:
            saved = await reach(stores, "same")
            (recalled,) = await stores.memory.recall_patterns(SORTER, tenant="home", repo="shop")
            assert recalled.pattern == saved
            assert recalled.likeness == pytest.approx(1.0, abs=1e-3)

        asyncio.run(scenario())

    def test_similar_patterns_rank_first_and_unrelated_are_not_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "alike", ALIKE)
            await reach(stores, "same")
            await reach(stores, "stranger", UNRELATED)
            assert await recall_ids(stores, limit=9) == "same alike"
            assert await recall_ids(stores, UNRELATED, limit=9) == "stranger"
            likeness = [
                pattern.likeness for pattern in await stores.memory.recall_patterns(SORTER, tenant="home", repo="shop")
            ]
            assert likeness == sorted(likeness, reverse=True)

        asyncio.run(scenario())

    def test_goal_without_content_matches_no_pattern(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "same")
            await reach(stores, "mute", "Write a small program.")
            for goal in ("", "  ", "Make a tool", "!?"):
                assert await recall_ids(stores, goal, limit=9) == ""

        asyncio.run(scenario())

    def test_equally_similar_patterns_rank_by_own_repo_then_newest(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "z-old", repo="bank")
            await reach(stores, "mine")
            await reach(stores, "new", repo="mail")
            assert await recall_ids(stores, limit=9) == "mine new z-old"

        asyncio.run(scenario())

    def test_only_the_newest_pattern_per_goal_and_repo_is_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            for number in range(30):
                await reach(stores, f"cycle-{number}")
            await reach(stores, "respelt", SORTER.upper().replace(" ", "  "))
            await reach(stores, "alike", ALIKE)
            assert await recall_ids(stores, limit=9) == "respelt alike"

        asyncio.run(scenario())

    def test_limit_on_recalled_patterns_is_respected(self, stores: Stores) -> None:
        async def scenario() -> None:
            for repo in ("a", "b", "c", "d"):
                await reach(stores, repo, repo=repo)
            assert await recall_ids(stores, limit=2) == "d c"
            assert await recall_ids(stores) == "d c b"
            assert await recall_ids(stores, limit=0) == ""

        asyncio.run(scenario())

    def test_patterns_of_another_tenant_are_not_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "theirs", tenant="them")
            assert await recall_ids(stores) == ""
            assert await recall_ids(stores, tenant="them") == "theirs"

        asyncio.run(scenario())

    def test_queries_of_other_tenants_find_no_pattern(self, stores: Stores) -> None:
        rng = random.Random(11)  # noqa: S311
        goals = [SORTER, ALIKE, FARTHER, UNRELATED]

        async def scenario() -> None:
            for number, goal in enumerate(goals):
                await reach(stores, f"pattern-{number}", goal, tenant=("home", "them")[number % 2])
            for number in range(self.other_tenant_queries):
                tenant = rng.choice(("other", "them ", "Home", "home'--", "%", ""))
                other_stores = stores.for_tenant(rng.choice((tenant, "other")))
                goal, repo = rng.choice(goals), rng.choice(("shop", "%", ""))
                assert await other_stores.memory.recall_patterns(goal, tenant=tenant, repo=repo) == [], number
            assert await recall_ids(stores) == "pattern-0 pattern-2"

        asyncio.run(scenario())

    def test_only_verified_patterns_are_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "refused", outcome="refused")
            assert await recall_ids(stores) == ""

        asyncio.run(scenario())

    @pytest.mark.parametrize("result", list(Result))
    def test_patterns_of_runs_that_end_unverified_are_not_recalled(self, stores: Stores, result: Result) -> None:
        async def scenario() -> None:
            await reach(stores, "other", ALIKE)
            new, fence = await begin(stores.store)
            step_commit = commit(new, Step.remember, remembered=NewMemories(pattern=make_pattern("green", goal=SORTER)))
            await stores.store.commit(step_commit, fence)
            assert await recall_ids(stores) == "green other"
            await stores.store.commit(
                commit(step_commit.after, Step.decide, status=Status.finished, result=result), fence
            )
            assert await recall_ids(stores) == ("green other" if result is Result.verified else "other")

        asyncio.run(scenario())

    def test_attempt_leaves_only_one_pattern(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            first = commit(new, Step.remember, remembered=NewMemories(pattern=make_pattern("first")))
            await stores.store.commit(first, fence)
            second = commit(
                first.after, Step.remember, remembered=NewMemories(pattern=make_pattern("again", goal=ALIKE))
            )
            await stores.store.commit(second, fence)
            assert await recall_ids(stores, limit=9) == "first"

        asyncio.run(scenario())
