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
from redstart.testing.states import commit, make_lesson, make_spec


async def teach(
    stores: Stores,
    id: str,  # noqa: A002
    *,
    tenant: str = "home",
    result: Result = Result.verified,
    **overrides: Any,
) -> Lesson:
    """Save a lesson of a run with this result, a minute after the previous one."""
    stores, stores.clock.time = stores.for_tenant(tenant), stores.clock.time + 60
    saved = make_lesson(id, tenant=tenant, **overrides)
    new, fence = await begin(stores.store, f"run of {id}", spec=make_spec(tenant=tenant))
    step_commit = commit(new, Step.remember, remembered=NewMemories(lesson=saved))
    await stores.store.commit(step_commit, fence)
    await stores.store.commit(commit(step_commit.after, Step.decide, status=Status.finished, result=result), fence)
    return saved


async def use(stores: Stores, run_id: str, coins: dict[str, bool], *, result: Result = Result.verified) -> None:
    """Finish a run with this result that was, or was not, shown these lessons."""
    stores.clock.time += 60
    new, fence = await begin(stores.store, run_id)
    fell = tuple(LessonDraw(lesson=name, shown=shown, probability=0.5) for name, shown in coins.items())
    changes: dict[str, Any] = {"status": Status.finished, "result": result, "taught": LessonDraws(coins=fell)}
    await stores.store.commit(commit(new, Step.decide, **changes), fence)


class LessonStoreContract:
    def test_lessons_of_verified_runs_are_listed_oldest_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            first, second = await teach(stores, "z"), await teach(stores, "a", files={"cart.py": "1f"})
            assert await stores.lessons.list_lessons() == [first, second]

        asyncio.run(scenario())

    @pytest.mark.parametrize("result", [Result.refused, Result.unsolved])
    def test_lesson_of_an_unverified_run_stays_quarantined(self, stores: Stores, result: Result) -> None:
        async def scenario() -> None:
            saved = await teach(stores, "one", result=result)
            (stored,) = await stores.lessons.list_lessons()
            assert stored == saved.model_copy(update={"status": Standing.quarantined})
            active = saved.model_copy(update={"status": Standing.active})
            assert not await stores.lessons.put(active, unless_status=Standing.quarantined)
            assert await stores.lessons.list_lessons() == [stored]

        asyncio.run(scenario())

    def test_finished_run_records_one_use_per_lesson(self, stores: Stores) -> None:
        async def scenario() -> None:
            await use(stores, "run-1", {"a": True, "b": False})
            await use(stores, "run-2", {"a": False}, result=Result.unsolved)
            await use(stores, "run-3", {"a": True}, result=Result.environment)
            uses = await stores.lessons.list_uses(["a", "b", "c"])
            start = stores.clock.time - 180
            assert uses["a"] == [
                LessonUse(LessonOutcome(probability=0.5, shown=True, green=True, cost=0.0), start + 60),
                LessonUse(LessonOutcome(probability=0.5, shown=False, green=False, cost=0.0), start + 120),
                LessonUse(LessonOutcome(probability=0.5, shown=True, green=None, cost=0.0), start + 180),
            ]
            assert [item.use.shown for item in uses["b"]] == [False]
            assert uses["c"] == []

        asyncio.run(scenario())

    def test_changed_status_and_scope_are_saved(self, stores: Stores) -> None:
        async def scenario() -> None:
            saved = await teach(stores, "one")
            updated = saved.model_copy(
                update={"scope": LessonScope.tenant, "status": Standing.retired, "reason": "it harms"}
            )
            assert await stores.lessons.put(updated)
            assert await stores.lessons.list_lessons() == [updated]
            assert not await stores.lessons.put(make_lesson("nobody's"))

        asyncio.run(scenario())

    def test_other_tenants_see_only_lessons_for_everyone(self, stores: Stores) -> None:
        async def scenario() -> None:
            await teach(stores, "narrow", scope=LessonScope.tenant)
            wide = await teach(stores, "wide", scope=LessonScope.everyone)
            await use(stores, "run-1", {"wide": True})
            other_store = stores.for_tenant("them").lessons
            assert await other_store.list_lessons() == [wide]
            assert await other_store.list_uses(["wide"]) == {"wide": []}
            assert not await other_store.put(wide.model_copy(update={"reason": "ours now"}))
            assert await other_store.forget("wide") is None
            assert wide in await stores.lessons.list_lessons()

        asyncio.run(scenario())

    def test_forgetting_a_lesson_removes_its_duplicates_and_uses(self, stores: Stores) -> None:
        async def scenario() -> None:
            first = await teach(stores, "first")
            await teach(stores, "again", same_as="first", when="As before, said otherwise", advice="the same in short")
            other = await teach(stores, "other")
            await use(stores, "run-1", {"first": True, "other": True})
            forgotten = await stores.lessons.forget("first")
            assert forgotten is not None
            assert {first.when, first.advice, "As before, said otherwise"} <= set(forgotten.texts)
            assert await stores.lessons.list_lessons() == [other]
            assert [len(uses) for uses in (await stores.lessons.list_uses(["first", "other"])).values()] == [0, 1]
            assert await stores.lessons.forget("first") is None

        asyncio.run(scenario())
