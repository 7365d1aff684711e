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
from redstart.core.run_status import Control
from redstart.ports.memory.port import LessonStore, Memory
from redstart.ports.store.port.journal import Journal
from redstart.ports.store.port.runs import PersonMessage, PersonWord, Store
from redstart.testing.states import commit, make_card, make_failure, make_signature, make_spec, make_state

DAWN = datetime(2030, 1, 1, 6, 30, 0, 123456, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


class Stores(NamedTuple):
    """Adapters of four ports on one empty database as `home` sees it, and the clock. `of` is for another tenant."""

    store: Store
    journal: Journal
    memory: Memory
    lessons: LessonStore
    clock: Clock
    for_tenant: Callable[[str], Stores]


async def begin(store: Store, run_id: str = "run-1", **overrides: object) -> tuple[RunState, int]:
    """Create a new run and claim it."""
    await store.create(make_state(run_id=run_id, **overrides), folder="/home/shop", created=DAWN)
    return await store.claim(run_id)


async def trace(store: Store, run_id: str = "run-1") -> object:
    """Load everything that a store knows about a run, to detect changes."""
    steps, events = await store.list_steps(run_id), await store.list_events(run_id)
    return (await store.load(run_id), steps, events, await store.list_runs(prefix=run_id))


def _build_attempt(model: str, *edits: tuple[EditKind, EditFit | None]) -> Attempt:
    """Make the first attempt, with these outcomes of the model's edits."""
    edit_records = tuple(EditRecord(kind=kind, rung=fit) for kind, fit in edits)
    return Attempt(entry=Step.reproduce, patch=Patch(model=model), apply=ApplyResult(ok=False, rungs=edit_records))


class StoreContract:
    def test_new_run_is_stored_unchanged(self, stores: Stores) -> None:
        async def scenario() -> None:
            new = make_state()
            await stores.store.create(new, folder="/home/shop", created=DAWN)
            assert await stores.store.load("run-1") == new
            assert await stores.store.load_first("run-1") == new
            assert await stores.store.list_steps("run-1") == []
            assert await stores.store.list_events("run-1") == []

        asyncio.run(scenario())

    def test_duplicate_run_id_is_rejected(self, stores: Stores) -> None:
        async def scenario() -> None:
            await stores.store.create(make_state(), folder="/home/shop", created=DAWN)
            before = await trace(stores.store)
            with pytest.raises(StoreError):
                await stores.store.create(make_state(spec=make_spec(goal="other")), folder="/home/else", created=DAWN)
            assert await trace(stores.store) == before

        asyncio.run(scenario())

    def test_unknown_run_raises_a_store_error(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            for call in (store.load, store.load_first, store.claim):
                with pytest.raises(StoreError) as caught:
                    await call("nobody")
                assert not isinstance(caught.value, Fenced)
            with pytest.raises(StoreError):
                await store.control("nobody", Control.pause)
            assert await store.list_steps("nobody") == []
            assert await store.list_events("nobody") == []

        asyncio.run(scenario())

    def test_each_claim_gets_a_greater_fence(self, stores: Stores) -> None:
        async def scenario() -> None:
            first, low = await begin(stores.store)
            second, high = await stores.store.claim("run-1")
            assert first == second == make_state()
            assert high > low
            _, other = await begin(stores.store, "run-2")
            assert other == low, "a claim of one run is nothing to another"

        asyncio.run(scenario())

    def test_commit_saves_state_step_and_events(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            first = commit(new, Step.reproduce, artifact='{"red": 1}')
            second = commit(first.after, Step.plan, artifact='{"plan": "é\\u0000"}', events=3)
            assert await store.commit(first, fence) is Control.none
            assert await store.commit(second, fence) is Control.none

            assert await store.load("run-1") == second.after
            assert await store.load_first("run-1") == new
            rows = await store.list_steps("run-1")
            assert rows == [
                (1, 1, Step.reproduce, '{"red": 1}', first.after),
                (2, 1, Step.plan, '{"plan": "é\\u0000"}', second.after),
            ]
            assert await store.list_events("run-1") == [*first.events, *second.events]
            assert await store.list_events("run-1", after=2) == second.events[1:]
            assert await store.list_events("run-1", after=4) == []

        asyncio.run(scenario())

    def test_step_belongs_to_the_attempt_that_executed_it(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            retried = commit(new, Step.decide, now=Attempt(number=2, entry=Step.patch))
            await stores.store.commit(retried, fence)
            await stores.store.commit(commit(retried.after, Step.patch), fence)
            assert [row.attempt for row in await stores.store.list_steps("run-1")] == [1, 2]

        asyncio.run(scenario())

    def test_stale_driver_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, stale = await begin(store)
            _, fence = await store.claim("run-1")
            memories = NewMemories(card=make_card(), failure=make_failure())
            before = await trace(store)
            with pytest.raises(Fenced):
                await store.commit(commit(new, Step.remember, remembered=memories), stale)
            assert await trace(store) == before
            assert await stores.memory.recall(make_signature(), tenant="home", repo="shop") == []
            await store.commit(commit(new), fence)

        asyncio.run(scenario())

    def test_fence_from_the_future_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            with pytest.raises(Fenced):
                await stores.store.commit(commit(new), fence + 1)
            assert await stores.store.load("run-1") == new

        asyncio.run(scenario())

    def test_step_is_committed_once(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            step_commit = commit(new)
            await store.commit(step_commit, fence)
            before = await trace(store)
            with pytest.raises(Fenced):
                await store.commit(step_commit, fence)
            with pytest.raises(Fenced):
                await store.commit(commit(commit(step_commit.after).after), fence)
            assert await trace(store) == before

        asyncio.run(scenario())

    def test_commit_of_an_unknown_run_writes_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            with pytest.raises(Fenced):
                await stores.store.commit(commit(make_state(run_id="nobody")), 1)
            assert await stores.store.list_runs() == []

        asyncio.run(scenario())

    def test_commit_that_fails_halfway_leaves_nothing(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            step_commit = commit(new)
            await store.commit(step_commit, fence)
            before = await trace(store)
            repeated = commit(step_commit.after, Step.remember, remembered=NewMemories(card=make_card()))._replace(
                events=step_commit.events
            )
            with pytest.raises(StoreError):
                await store.commit(repeated, fence)
            assert await trace(store) == before
            assert await stores.memory.recall(make_signature(), tenant="home", repo="shop") == []

        asyncio.run(scenario())

    def test_runs_do_not_affect_each_other(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            first_run, first_fence = await begin(store, "run-1")
            second_run, second_fence = await begin(store, "run-2")
            await store.commit(commit(first_run), first_fence)
            assert await store.load("run-2") == second_run
            await store.commit(commit(second_run, Step.plan, events=1), second_fence)
            assert [row.step for row in await store.list_steps("run-1")] == [Step.reproduce]
            assert len(await store.list_events("run-1")) == 2
            assert len(await store.list_events("run-2")) == 1

        asyncio.run(scenario())

    def test_attempt_leaves_only_one_card(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            first = commit(
                new, Step.remember, remembered=NewMemories(card=make_card("first"), failure=make_failure("first"))
            )
            await stores.store.commit(first, fence)
            second = commit(
                first.after,
                Step.remember,
                remembered=NewMemories(card=make_card("second"), failure=make_failure("second")),
            )
            await stores.store.commit(second, fence)
            assert await stores.store.load("run-1") == second.after
            recalled = await stores.memory.recall(make_signature(), tenant="home", repo="shop")
            assert [item.card for item in recalled] == [make_card("first")]

        asyncio.run(scenario())

    def test_duplicate_card_id_is_rejected(self, stores: Stores) -> None:
        async def scenario() -> None:
            memories = NewMemories(card=make_card(), failure=make_failure())
            for run_id in ("run-1", "run-2"):
                new, fence = await begin(stores.store, run_id)
                step_commit = commit(new, Step.remember, remembered=memories)
                if run_id == "run-1":
                    await stores.store.commit(step_commit, fence)
                else:
                    with pytest.raises(StoreError):
                        await stores.store.commit(step_commit, fence)
            assert await stores.store.load("run-2") == make_state(run_id="run-2")

        asyncio.run(scenario())

    def test_each_attempt_may_leave_a_card(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            first = commit(new, Step.remember, remembered=NewMemories(card=make_card("first")))
            await stores.store.commit(first, fence)
            retried = commit(first.after, Step.decide, now=Attempt(number=2, entry=Step.patch))
            await stores.store.commit(retried, fence)
            await stores.store.commit(
                commit(retried.after, Step.remember, remembered=NewMemories(card=make_card("second"))), fence
            )
            recalled = await stores.memory.recall(make_signature(), tenant="home", repo="shop")
            assert {item.card.id for item in recalled} == {"first", "second"}

        asyncio.run(scenario())

    def test_edits_are_counted_once_by_model_form_and_tenant(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            first = commit(
                new, Step.apply, now=_build_attempt("a:1", (EditKind.block, EditFit.exact), (EditKind.block, None))
            )
            with pytest.raises(Fenced):
                await store.commit(first, fence + 1)
            assert await store.count_fits("a:1", tenant="home") == {}
            await store.commit(first, fence)
            with pytest.raises(Fenced):
                await store.commit(first, fence)
            second = commit(first.after, Step.apply, now=_build_attempt("a:1", (EditKind.block, None)))
            await store.commit(second, fence)
            await store.commit(commit(second.after, Step.check), fence)
            assert await store.count_fits("a:1", tenant="home") == {EditKind.block: FitCounts(1, 2)}, (
                "an attempt counts once"
            )

            tenants = (("run-2", "home", "a:1"), ("run-3", "home", "b:2"), ("run-4", "other", "a:1"))
            for run_id, tenant, model in tenants:
                other_run, other_fence = await begin(
                    stores.for_tenant(tenant).store, run_id, spec=make_spec(tenant=tenant)
                )
                attempt = _build_attempt(model, (EditKind.diff, EditFit.merge), (EditKind.block, EditFit.exact))
                await stores.for_tenant(tenant).store.commit(commit(other_run, Step.apply, now=attempt), other_fence)
            expected = {EditKind.diff: FitCounts(1, 1), EditKind.block: FitCounts(1, 1)}
            assert await store.count_fits("a:1", tenant="home") == {**expected, EditKind.block: FitCounts(2, 3)}
            other_store = stores.for_tenant("other").store
            assert (
                await store.count_fits("b:2", tenant="home")
                == await other_store.count_fits("a:1", tenant="other")
                == expected
            )
            assert (
                await other_store.count_fits("b:2", tenant="other")
                == await store.count_fits("a:1", tenant="other")
                == {}
            )

        asyncio.run(scenario())

    def test_commit_returns_the_requested_control(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            current, fence = await begin(store)
            for control in (Control.pause, Control.cancel, Control.none):
                await store.control("run-1", control)
                step_commit = commit(current)
                assert await store.commit(step_commit, fence) is control
                current = step_commit.after

        asyncio.run(scenario())

    def test_control_request_does_not_take_over_the_run(self, stores: Stores) -> None:
        async def scenario() -> None:
            new, fence = await begin(stores.store)
            await stores.store.control("run-1", Control.pause)
            assert await stores.store.load("run-1") == new
            assert await stores.store.commit(commit(new), fence) is Control.pause

        asyncio.run(scenario())

    def test_messages_to_a_run_keep_their_order_and_do_not_take_it_over(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            new, fence = await begin(store)
            await begin(store, "run-2")
            stores.clock.time = DAWN.timestamp()
            await store.send_message("run-1", PersonWord.say, "it is the tax é", version=0)
            await store.send_message("run-1", PersonWord.say, "it is the tax é", version=0)
            step_commit = commit(new)
            assert await store.commit(step_commit, fence) is Control.none, "the driver goes on"
            await store.send_message("run-1", PersonWord.reject, "", version=1)
            message = PersonMessage(PersonWord.say, "it is the tax é", 0, DAWN)
            assert await store.list_messages("run-1") == [
                message,
                message,
                PersonMessage(PersonWord.reject, "", 1, DAWN),
            ]
            assert await store.list_messages("run-2") == await store.list_messages("nobody") == []
            assert await store.load("run-1") == step_commit.after
            with pytest.raises(StoreError):
                await store.send_message("nobody", PersonWord.say, "hello", version=0)

        asyncio.run(scenario())

    def test_holder_of_a_run_is_known_until_release(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            await store.create(make_state(), folder="/home/shop", created=DAWN)
            assert await store.get_holder("run-1") is None
            _, stale = await store.claim("run-1")
            _, fence = await store.claim("run-1")
            await store.release("run-1", stale)
            holder = await store.get_holder("run-1")
            assert holder is not None, "it was taken over: only the new driver gives it back"
            assert holder.pid == os.getpid()
            await store.release("run-1", fence)
            assert await store.get_holder("run-1") is None
            await store.release("nobody", 1)
            assert await store.get_holder("nobody") is None

        asyncio.run(scenario())

    def test_runs_are_listed_newest_first(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            for number, (run_id, folder) in enumerate(
                [("ab1", "/home/shop"), ("ab2", "/home/bank"), ("b_3", "/home/shop"), ("AB4", "/home/shop")]
            ):
                created = DAWN + timedelta(seconds=1 if number == 0 else -number)
                await store.create(make_state(run_id=run_id), folder=folder, created=created)

            async def list_ids(folder: str | None = None, prefix: str = "", limit: int = 50) -> list[str]:
                return [row.run_id for row in await store.list_runs(folder=folder, prefix=prefix, limit=limit)]

            assert await list_ids() == ["ab1", "ab2", "b_3", "AB4"]
            assert await list_ids(limit=2) == ["ab1", "ab2"]
            assert await list_ids(folder="/home/shop") == ["ab1", "b_3", "AB4"]
            assert await list_ids(folder="/home") == []
            assert await list_ids(prefix="ab") == ["ab1", "ab2"]
            assert await list_ids(prefix="ab2") == ["ab2"]
            assert await list_ids(prefix="b_") == ["b_3"]
            for pattern in ("_", "%", "a%", "nobody"):
                assert await list_ids(prefix=pattern) == []
            assert await list_ids(folder="/home/shop", prefix="ab") == ["ab1"]

        asyncio.run(scenario())

    def test_child_runs_are_listed_only_on_request(self, stores: Stores) -> None:
        async def scenario() -> None:
            store = stores.store
            for number, run_id in enumerate(("ab1", "ab1.1", "ab1.2", "ab2")):
                await store.create(make_state(run_id=run_id), folder="", created=DAWN - timedelta(seconds=number))

            async def list_ids(prefix: str = "", *, include_child_runs: bool = False) -> list[str]:
                return [
                    row.run_id for row in await store.list_runs(prefix=prefix, include_child_runs=include_child_runs)
                ]

            assert await list_ids() == ["ab1", "ab2"]
            assert await list_ids("ab1") == ["ab1"]
            assert await list_ids("ab1.") == ["ab1.1", "ab1.2"]
            assert await list_ids("ab1", include_child_runs=True) == ["ab1", "ab1.1", "ab1.2"]
            assert await list_ids(include_child_runs=True) == ["ab1", "ab1.1", "ab1.2", "ab2"]

        asyncio.run(scenario())
