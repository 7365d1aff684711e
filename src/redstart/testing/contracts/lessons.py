"""The contract of every lesson store. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redstart.core.learning import NewMemories
from redstart.core.lesson import Lesson, LessonDraw, LessonDraws, LessonOutcome, LessonScope
from redstart.core.lesson import LessonStatus as Standing
from redstart.core.run import Result, Status, Step
from redstart.ports.memory.port import LessonUse
from redstart.testing.contracts.store import Stores, begin
from redstart.testing.states import commit, lesson, spec


async def teach(
    stores: Stores,
    id: str,  # noqa: A002
    *,
    tenant: str = "home",
    result: Result = Result.verified,
    **over: Any,
) -> Lesson:
    """Save a lesson of a run with this result, a minute after the previous one."""
    stores, stores.clock.time = stores.of(tenant), stores.clock.time + 60
    left = lesson(id, tenant=tenant, **over)
    new, fence = await begin(stores.store, f"run of {id}", spec=spec(tenant=tenant))
    done = commit(new, Step.remember, remembered=NewMemories(lesson=left))
    await stores.store.commit(done, fence)
    await stores.store.commit(commit(done.after, Step.decide, status=Status.finished, result=result), fence)
    return left


async def use(stores: Stores, run_id: str, coins: dict[str, bool], *, result: Result = Result.verified) -> None:
    """Finish a run with this result that was, or was not, shown these lessons."""
    stores.clock.time += 60
    new, fence = await begin(stores.store, run_id)
    fell = tuple(LessonDraw(lesson=name, shown=shown, probability=0.5) for name, shown in coins.items())
    ended: dict[str, Any] = {"status": Status.finished, "result": result, "taught": LessonDraws(coins=fell)}
    await stores.store.commit(commit(new, Step.decide, **ended), fence)


class LessonStoreContract:
    def test_what_a_verified_run_taught_is_there_the_oldest_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            first, second = await teach(stores, "z"), await teach(stores, "a", files={"cart.py": "1f"})
            assert await stores.shelf.lessons() == [first, second]

        asyncio.run(scenario())

    @pytest.mark.parametrize("result", [Result.refused, Result.unsolved])
    def test_what_another_run_taught_is_in_quarantine_and_stays_there(self, stores: Stores, result: Result) -> None:
        async def scenario() -> None:
            taught = await teach(stores, "one", result=result)
            (found,) = await stores.shelf.lessons()
            assert found == taught.model_copy(update={"status": Standing.quarantined})
            active = taught.model_copy(update={"status": Standing.active})
            assert not await stores.shelf.put(active, unless=Standing.quarantined)
            assert await stores.shelf.lessons() == [found]

        asyncio.run(scenario())

    def test_the_end_of_a_run_says_what_it_says_of_each_lesson_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            await use(stores, "run-1", {"a": True, "b": False})
            await use(stores, "run-2", {"a": False}, result=Result.unsolved)
            await use(stores, "run-3", {"a": True}, result=Result.environment)
            found = await stores.shelf.uses(["a", "b", "c"])
            start = stores.clock.time - 180
            assert found["a"] == [
                LessonUse(LessonOutcome(probability=0.5, shown=True, green=True, cost=0.0), start + 60),
                LessonUse(LessonOutcome(probability=0.5, shown=False, green=False, cost=0.0), start + 120),
                LessonUse(LessonOutcome(probability=0.5, shown=True, green=None, cost=0.0), start + 180),
            ]
            assert [item.use.shown for item in found["b"]] == [False]
            assert found["c"] == []

        asyncio.run(scenario())

    def test_another_status_and_scope_are_kept(self, stores: Stores) -> None:
        async def scenario() -> None:
            taught = await teach(stores, "one")
            wider = taught.model_copy(
                update={"scope": LessonScope.tenant, "status": Standing.retired, "reason": "it harms"}
            )
            assert await stores.shelf.put(wider)
            assert await stores.shelf.lessons() == [wider]
            assert not await stores.shelf.put(lesson("nobody's"))

        asyncio.run(scenario())

    def test_another_tenant_sees_only_what_is_for_everyone(self, stores: Stores) -> None:
        async def scenario() -> None:
            await teach(stores, "narrow", scope=LessonScope.tenant)
            wide = await teach(stores, "wide", scope=LessonScope.everyone)
            await use(stores, "run-1", {"wide": True})
            them = stores.of("them").shelf
            assert await them.lessons() == [wide]
            assert await them.uses(["wide"]) == {"wide": []}
            assert not await them.put(wide.model_copy(update={"reason": "ours now"}))
            assert await them.forget("wide") is None
            assert wide in await stores.shelf.lessons()

        asyncio.run(scenario())

    def test_forgetting_takes_what_says_the_same_and_what_was_seen_of_it(self, stores: Stores) -> None:
        async def scenario() -> None:
            first = await teach(stores, "first")
            await teach(stores, "again", same_as="first", when="As before, said otherwise", advice="the same in short")
            other = await teach(stores, "other")
            await use(stores, "run-1", {"first": True, "other": True})
            gone = await stores.shelf.forget("first")
            assert gone is not None
            assert {first.when, first.advice, "As before, said otherwise"} <= set(gone.texts)
            assert await stores.shelf.lessons() == [other]
            assert [len(seen) for seen in (await stores.shelf.uses(["first", "other"])).values()] == [0, 1]
            assert await stores.shelf.forget("first") is None

        asyncio.run(scenario())
