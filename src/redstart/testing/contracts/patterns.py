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
from redstart.testing.states import commit, pattern, spec

SORTER = "A command line tool that sorts a CSV file by a column."
ALIKE = "Sort CSV files by one of their columns, on the command line"
FARTHER = "A library that reads a column of a CSV file and sums it"
STRANGER = "A snake game for the terminal, with a table of the best players"


async def reach(
    stores: Stores,
    id: str,  # noqa: A002
    goal: str = SORTER,
    *,
    tenant: str = "home",
    repo: str = "shop",
    **over: Any,
) -> SolutionPattern:
    """Save a pattern from a separate run, a minute after the previous one."""
    stores, stores.clock.time = stores.of(tenant), stores.clock.time + 60
    left = pattern(id, goal=goal, **over)
    new, fence = await begin(stores.store, f"run of {id}", spec=spec(mode=Mode.create, tenant=tenant, repo=repo))
    await stores.store.commit(commit(new, Step.remember, remembered=NewMemories(pattern=left)), fence)
    return left


async def found(stores: Stores, goal: str = SORTER, *, tenant: str = "home", repo: str = "shop", limit: int = 3) -> str:
    """Recall patterns and return their IDs."""
    recalled = await stores.of(tenant).memory.patterns(goal, tenant=tenant, repo=repo, limit=limit)
    return " ".join(item.pattern.id for item in recalled)


class PatternsContract:
    asked_for_plans = 100
    """The number of queries by other tenants."""

    def test_no_pattern_is_recalled_from_nothing(self, stores: Stores) -> None:
        assert asyncio.run(found(stores)) == ""

    def test_a_pattern_comes_back_whole_with_its_likeness(self, stores: Stores) -> None:
        async def scenario() -> None:
            left = await reach(stores, "same")
            (one,) = await stores.memory.patterns(SORTER, tenant="home", repo="shop")
            assert one.pattern == left
            assert one.likeness == pytest.approx(1.0, abs=1e-3)

        asyncio.run(scenario())

    def test_the_more_alike_come_first_and_strangers_never(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "alike", ALIKE)
            await reach(stores, "same")
            await reach(stores, "stranger", STRANGER)
            assert await found(stores, limit=9) == "same alike"
            assert await found(stores, STRANGER, limit=9) == "stranger"
            likeness = [
                pattern.likeness for pattern in await stores.memory.patterns(SORTER, tenant="home", repo="shop")
            ]
            assert likeness == sorted(likeness, reverse=True)

        asyncio.run(scenario())

    def test_a_goal_that_says_nothing_is_like_no_other(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "same")
            await reach(stores, "mute", "Write a small program.")
            for goal in ("", "  ", "Make a tool", "!?"):
                assert await found(stores, goal, limit=9) == ""

        asyncio.run(scenario())

    def test_of_patterns_as_alike_the_repos_own_come_first_and_then_the_newest(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "z-old", repo="bank")
            await reach(stores, "mine")
            await reach(stores, "new", repo="mail")
            assert await found(stores, limit=9) == "mine new z-old"

        asyncio.run(scenario())

    def test_of_one_goal_in_one_repo_only_the_newest_is_recalled(self, stores: Stores) -> None:
        async def scenario() -> None:
            for number in range(30):
                await reach(stores, f"cycle-{number}")
            await reach(stores, "respelt", SORTER.upper().replace(" ", "  "))
            await reach(stores, "alike", ALIKE)
            assert await found(stores, limit=9) == "respelt alike"

        asyncio.run(scenario())

    def test_no_more_patterns_than_the_limit(self, stores: Stores) -> None:
        async def scenario() -> None:
            for repo in ("a", "b", "c", "d"):
                await reach(stores, repo, repo=repo)
            assert await found(stores, limit=2) == "d c"
            assert await found(stores) == "d c b"
            assert await found(stores, limit=0) == ""

        asyncio.run(scenario())

    def test_never_another_tenants_pattern(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "theirs", tenant="them")
            assert await found(stores) == ""
            assert await found(stores, tenant="them") == "theirs"

        asyncio.run(scenario())

    def test_goals_of_others_find_nothing(self, stores: Stores) -> None:
        rng = random.Random(11)  # noqa: S311
        goals = [SORTER, ALIKE, FARTHER, STRANGER]

        async def scenario() -> None:
            for number, goal in enumerate(goals):
                await reach(stores, f"pattern-{number}", goal, tenant=("home", "them")[number % 2])
            for number in range(self.asked_for_plans):
                tenant = rng.choice(("other", "them ", "Home", "home'--", "%", ""))
                eyes = stores.of(rng.choice((tenant, "other")))
                goal, repo = rng.choice(goals), rng.choice(("shop", "%", ""))
                assert await eyes.memory.patterns(goal, tenant=tenant, repo=repo) == [], number
            assert await found(stores) == "pattern-0 pattern-2"

        asyncio.run(scenario())

    def test_only_the_pattern_of_what_was_verified_is_shown(self, stores: Stores) -> None:
        async def scenario() -> None:
            await reach(stores, "refused", outcome="refused")
            assert await found(stores) == ""

        asyncio.run(scenario())

    @pytest.mark.parametrize("result", list(Result))
    def test_the_pattern_of_a_run_that_is_not_verified_in_the_end_is_not_shown(
        self, stores: Stores, result: Result
    ) -> None:
        async def scenario() -> None:
            await reach(stores, "other", ALIKE)
            new, fence = await begin(stores.store)
            green = commit(new, Step.remember, remembered=NewMemories(pattern=pattern("green", goal=SORTER)))
            await stores.store.commit(green, fence)
            assert await found(stores) == "green other"
            await stores.store.commit(commit(green.after, Step.decide, status=Status.finished, result=result), fence)
            assert await found(stores) == ("green other" if result is Result.verified else "other")

        asyncio.run(scenario())

    def test_the_pattern_that_an_attempt_left_is_kept_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            first = commit(new, Step.remember, remembered=NewMemories(pattern=pattern("first")))
            await stores.store.commit(first, fence)
            again = commit(first.after, Step.remember, remembered=NewMemories(pattern=pattern("again", goal=ALIKE)))
            await stores.store.commit(again, fence)
            assert await found(stores, limit=9) == "first"

        asyncio.run(scenario())
