"""The contract of every store. Subclass it as `Test...` and provide the fixture `stores`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from redstart.core.change import ApplyResult, EditFit, EditKind, EditRecord, FitCounts, Patch
from redstart.core.errors import Fenced, StoreError
from redstart.core.learning import NewMemories
from redstart.core.run import Attempt, RunState, Step
from redstart.core.standing import Control
from redstart.ports.memory.port import LessonStore, Memory
from redstart.ports.store.port.journal import Journal
from redstart.ports.store.port.runs import PersonMessage, PersonWord, Store
from redstart.testing.states import card, commit, failure, signature, spec, state

DAWN = datetime(2030, 1, 1, 6, 30, 0, 123456, tzinfo=UTC)


class Clock:
    """A clock that shows the time it is set to."""

    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


class Stores(NamedTuple):
    """Adapters of four ports on one empty database as `home` sees it, and the clock. `of` is for another tenant."""

    store: Store
    journal: Journal
    memory: Memory
    shelf: LessonStore
    clock: Clock
    of: Callable[[str], Stores]


async def begin(store: Store, run_id: str = "run-1", **over: object) -> tuple[RunState, int]:
    """Create a new run and claim it."""
    await store.create(state(run_id=run_id, **over), folder="/home/shop", created=DAWN)
    return await store.claim(run_id)


async def trace(store: Store, run_id: str = "run-1") -> object:
    """Load everything that a store knows about a run, to detect changes."""
    steps, events = await store.steps(run_id), await store.events(run_id)
    return (await store.load(run_id), steps, events, await store.runs(prefix=run_id))


def _tried(model: str, *edits: tuple[EditKind, EditFit | None]) -> Attempt:
    """Make the first attempt, with these outcomes of the model's edits."""
    rungs = tuple(EditRecord(kind=kind, rung=rung) for kind, rung in edits)
    return Attempt(entry=Step.reproduce, patch=Patch(model=model), apply=ApplyResult(ok=False, rungs=rungs))


class StoreContract:
    def test_a_new_run_is_kept_as_it_was_given(self, stores: Stores) -> None:
        async def scenario() -> None:
            new = state()
            await stores.store.create(new, folder="/home/shop", created=DAWN)
            assert await stores.store.load("run-1") == new
            assert await stores.store.first("run-1") == new
            assert await stores.store.steps("run-1") == []
            assert await stores.store.events("run-1") == []

        asyncio.run(scenario())

    def test_an_id_is_taken_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            await stores.store.create(state(), folder="/home/shop", created=DAWN)
            before = await trace(stores.store)
            with pytest.raises(StoreError):
                await stores.store.create(state(spec=spec(goal="other")), folder="/home/else", created=DAWN)
            assert await trace(stores.store) == before

        asyncio.run(scenario())

    def test_an_unknown_run_is_a_store_error(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            for call in (store.load, store.first, store.claim):
                with pytest.raises(StoreError) as raised:
                    await call("nobody")
                assert not isinstance(raised.value, Fenced)
            with pytest.raises(StoreError):
                await store.control("nobody", Control.pause)
            assert await store.steps("nobody") == []
            assert await store.events("nobody") == []

        asyncio.run(scenario())

    def test_each_claim_has_a_greater_fence(self, stores: Stores) -> None:
        async def scenario() -> None:
            first, low = await begin(stores.store)
            second, high = await stores.store.claim("run-1")
            assert first == second == state()
            assert high > low
            _, other = await begin(stores.store, "run-2")
            assert other == low, "a claim of one run is nothing to another"

        asyncio.run(scenario())

    def test_a_commit_keeps_state_step_and_events(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            one = commit(new, Step.reproduce, artifact='{"red": 1}')
            two = commit(one.after, Step.plan, artifact='{"plan": "é\\u0000"}', events=3)
            assert await store.commit(one, fence) is Control.none
            assert await store.commit(two, fence) is Control.none

            assert await store.load("run-1") == two.after
            assert await store.first("run-1") == new
            rows = await store.steps("run-1")
            assert rows == [
                (1, 1, Step.reproduce, '{"red": 1}', one.after),
                (2, 1, Step.plan, '{"plan": "é\\u0000"}', two.after),
            ]
            assert await store.events("run-1") == [*one.events, *two.events]
            assert await store.events("run-1", after=2) == two.events[1:]
            assert await store.events("run-1", after=4) == []

        asyncio.run(scenario())

    def test_a_step_belongs_to_the_attempt_in_which_it_was_done(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            retried = commit(new, Step.decide, now=Attempt(number=2, entry=Step.patch))
            await stores.store.commit(retried, fence)
            await stores.store.commit(commit(retried.after, Step.patch), fence)
            assert [row.attempt for row in await stores.store.steps("run-1")] == [1, 2]

        asyncio.run(scenario())

    def test_a_stale_driver_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, stale = await begin(store)
            _, fence = await store.claim("run-1")
            left = NewMemories(card=card(), failure=failure())
            before = await trace(store)
            with pytest.raises(Fenced):
                await store.commit(commit(new, Step.remember, remembered=left), stale)
            assert await trace(store) == before
            assert await stores.memory.recall(signature(), tenant="home", repo="shop") == []
            await store.commit(commit(new), fence)

        asyncio.run(scenario())

    def test_a_fence_from_the_future_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            with pytest.raises(Fenced):
                await stores.store.commit(commit(new), fence + 1)
            assert await stores.store.load("run-1") == new

        asyncio.run(scenario())

    def test_a_step_is_committed_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            one = commit(new)
            await store.commit(one, fence)
            before = await trace(store)
            with pytest.raises(Fenced):
                await store.commit(one, fence)
            with pytest.raises(Fenced):
                await store.commit(commit(commit(one.after).after), fence)
            assert await trace(store) == before

        asyncio.run(scenario())

    def test_a_commit_of_an_unknown_run_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            with pytest.raises(Fenced):
                await stores.store.commit(commit(state(run_id="nobody")), 1)
            assert await stores.store.runs() == []

        asyncio.run(scenario())

    def test_a_commit_that_fails_half_way_leaves_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            one = commit(new)
            await store.commit(one, fence)
            before = await trace(store)
            again = commit(one.after, Step.remember, remembered=NewMemories(card=card()))._replace(events=one.events)
            with pytest.raises(StoreError):
                await store.commit(again, fence)
            assert await trace(store) == before
            assert await stores.memory.recall(signature(), tenant="home", repo="shop") == []

        asyncio.run(scenario())

    def test_runs_do_not_touch_each_other(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            one, first = await begin(store, "run-1")
            two, second = await begin(store, "run-2")
            await store.commit(commit(one), first)
            assert await store.load("run-2") == two
            await store.commit(commit(two, Step.plan, events=1), second)
            assert [row.step for row in await store.steps("run-1")] == [Step.reproduce]
            assert len(await store.events("run-1")) == 2
            assert len(await store.events("run-2")) == 1

        asyncio.run(scenario())

    def test_what_an_attempt_left_is_kept_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            one = commit(new, Step.remember, remembered=NewMemories(card=card("first"), failure=failure("first")))
            await stores.store.commit(one, fence)
            two = commit(
                one.after, Step.remember, remembered=NewMemories(card=card("second"), failure=failure("second"))
            )
            await stores.store.commit(two, fence)
            assert await stores.store.load("run-1") == two.after
            found = await stores.memory.recall(signature(), tenant="home", repo="shop")
            assert [item.card for item in found] == [card("first")]

        asyncio.run(scenario())

    def test_the_id_of_a_card_is_taken_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            left = NewMemories(card=card(), failure=failure())
            for run_id in ("run-1", "run-2"):
                new, fence = await begin(stores.store, run_id)
                one = commit(new, Step.remember, remembered=left)
                if run_id == "run-1":
                    await stores.store.commit(one, fence)
                else:
                    with pytest.raises(StoreError):
                        await stores.store.commit(one, fence)
            assert await stores.store.load("run-2") == state(run_id="run-2")

        asyncio.run(scenario())

    def test_each_attempt_may_leave_something(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            one = commit(new, Step.remember, remembered=NewMemories(card=card("first")))
            await stores.store.commit(one, fence)
            retried = commit(one.after, Step.decide, now=Attempt(number=2, entry=Step.patch))
            await stores.store.commit(retried, fence)
            await stores.store.commit(
                commit(retried.after, Step.remember, remembered=NewMemories(card=card("second"))), fence
            )
            found = await stores.memory.recall(signature(), tenant="home", repo="shop")
            assert {item.card.id for item in found} == {"first", "second"}

        asyncio.run(scenario())

    def test_edits_are_counted_by_model_form_and_tenant_and_each_commit_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            one = commit(new, Step.apply, now=_tried("a:1", (EditKind.block, EditFit.exact), (EditKind.block, None)))
            with pytest.raises(Fenced):
                await store.commit(one, fence + 1)
            assert await store.tally("a:1", tenant="home") == {}
            await store.commit(one, fence)
            with pytest.raises(Fenced):
                await store.commit(one, fence)
            again = commit(one.after, Step.apply, now=_tried("a:1", (EditKind.block, None)))
            await store.commit(again, fence)
            await store.commit(commit(again.after, Step.check), fence)
            assert await store.tally("a:1", tenant="home") == {EditKind.block: FitCounts(1, 2)}, (
                "an attempt counts once"
            )

            tenants = (("run-2", "home", "a:1"), ("run-3", "home", "b:2"), ("run-4", "other", "a:1"))
            for run_id, tenant, model in tenants:
                begun, held = await begin(stores.of(tenant).store, run_id, spec=spec(tenant=tenant))
                tried = _tried(model, (EditKind.diff, EditFit.merge), (EditKind.block, EditFit.exact))
                await stores.of(tenant).store.commit(commit(begun, Step.apply, now=tried), held)
            both = {EditKind.diff: FitCounts(1, 1), EditKind.block: FitCounts(1, 1)}
            assert await store.tally("a:1", tenant="home") == {**both, EditKind.block: FitCounts(2, 3)}
            theirs = stores.of("other").store
            assert await store.tally("b:2", tenant="home") == await theirs.tally("a:1", tenant="other") == both
            assert await theirs.tally("b:2", tenant="other") == await store.tally("a:1", tenant="other") == {}

        asyncio.run(scenario())

    def test_a_commit_tells_what_people_ask_for(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            now, fence = await begin(store)
            for asked in (Control.pause, Control.cancel, Control.none):
                await store.control("run-1", asked)
                one = commit(now)
                assert await store.commit(one, fence) is asked
                now = one.after

        asyncio.run(scenario())

    def test_asking_takes_no_run_over(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            await stores.store.control("run-1", Control.pause)
            assert await stores.store.load("run-1") == new
            assert await stores.store.commit(commit(new), fence) is Control.pause

        asyncio.run(scenario())

    def test_what_people_tell_a_run_is_kept_in_order_and_takes_no_run_over(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            await begin(store, "run-2")
            stores.clock.time = DAWN.timestamp()
            await store.tell("run-1", PersonWord.say, "it is the tax é", version=0)
            await store.tell("run-1", PersonWord.say, "it is the tax é", version=0)
            one = commit(new)
            assert await store.commit(one, fence) is Control.none, "the driver goes on"
            await store.tell("run-1", PersonWord.reject, "", version=1)
            said = PersonMessage(PersonWord.say, "it is the tax é", 0, DAWN)
            assert await store.told("run-1") == [said, said, PersonMessage(PersonWord.reject, "", 1, DAWN)]
            assert await store.told("run-2") == await store.told("nobody") == []
            assert await store.load("run-1") == one.after
            with pytest.raises(StoreError):
                await store.tell("nobody", PersonWord.say, "hello", version=0)

        asyncio.run(scenario())

    def test_who_drives_a_run_is_known_until_it_is_given_back(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            await store.create(state(), folder="/home/shop", created=DAWN)
            assert await store.holder("run-1") is None
            _, stale = await store.claim("run-1")
            _, fence = await store.claim("run-1")
            await store.release("run-1", stale)
            holder = await store.holder("run-1")
            assert holder is not None, "it was taken over: only the new driver gives it back"
            assert holder.pid == os.getpid()
            await store.release("run-1", fence)
            assert await store.holder("run-1") is None
            await store.release("nobody", 1)
            assert await store.holder("nobody") is None

        asyncio.run(scenario())

    def test_runs_are_listed_newest_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            for number, (run_id, folder) in enumerate(
                [("ab1", "/home/shop"), ("ab2", "/home/bank"), ("b_3", "/home/shop"), ("AB4", "/home/shop")]
            ):
                when = DAWN + timedelta(seconds=1 if number == 0 else -number)
                await store.create(state(run_id=run_id), folder=folder, created=when)

            async def ids(folder: str | None = None, prefix: str = "", limit: int = 50) -> list[str]:
                return [row.run_id for row in await store.runs(folder=folder, prefix=prefix, limit=limit)]

            assert await ids() == ["ab1", "ab2", "b_3", "AB4"]
            assert await ids(limit=2) == ["ab1", "ab2"]
            assert await ids(folder="/home/shop") == ["ab1", "b_3", "AB4"]
            assert await ids(folder="/home") == []
            assert await ids(prefix="ab") == ["ab1", "ab2"]
            assert await ids(prefix="ab2") == ["ab2"]
            assert await ids(prefix="b_") == ["b_3"]
            for pattern in ("_", "%", "a%", "nobody"):
                assert await ids(prefix=pattern) == []
            assert await ids(folder="/home/shop", prefix="ab") == ["ab1"]

        asyncio.run(scenario())

    def test_runs_that_another_one_began_are_listed_only_where_they_are_asked_for(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            for number, run_id in enumerate(("ab1", "ab1.1", "ab1.2", "ab2")):
                await store.create(state(run_id=run_id), folder="", created=DAWN - timedelta(seconds=number))

            async def ids(prefix: str = "", *, errands: bool = False) -> list[str]:
                return [row.run_id for row in await store.runs(prefix=prefix, errands=errands)]

            assert await ids() == ["ab1", "ab2"]
            assert await ids("ab1") == ["ab1"]
            assert await ids("ab1.") == ["ab1.1", "ab1.2"]
            assert await ids("ab1", errands=True) == ["ab1", "ab1.1", "ab1.2"]
            assert await ids(errands=True) == ["ab1", "ab1.1", "ab1.2", "ab2"]

        asyncio.run(scenario())
