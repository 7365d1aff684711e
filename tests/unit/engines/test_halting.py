"""A driver that must stop between two steps or lacks a privilege loses nothing and repeats nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from redstart.core.errors import StoreError
from redstart.core.run import Result, RunState, Status, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.temporal.driver import DriveActivity
from redstart.engines.temporal.orders import DriveOrder
from redstart.flow.loop import StepAdvance
from support import rig as play
from support.rig import Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


@pytest.mark.slow
def test_a_driver_that_drains_stops_after_the_commit_at_hand_and_another_goes_on(rig: Rig) -> None:
    model = rig.with_model([play.RIGHT, play.CARD])
    words = iter(["", "", "drain"])

    async def go() -> tuple[StepAdvance, RunState]:
        run_id = await rig.begin()
        leaving = replace(rig.adapters, halting=lambda: next(words))
        stopped = await drive(leaving, await rig.adapters.store.claim(run_id), inline)
        assert await rig.adapters.store.holder(run_id) is None, "the driver released the run"
        return stopped, (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    stopped, ended = asyncio.run(go())
    assert (stopped.halt, stopped.state.last, stopped.state.status) == ("drain", Step.retrieve, Status.running)
    assert (ended.result, len(model.asks)) == (Result.verified, 2)


def test_what_is_tried_again_says_what_is_wrong_and_takes_nothing_else_along() -> None:
    async def go(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
        raise StoreError("the run store cannot be used") from ValueError("UPDATE runs SET state = 'sk-secret'")

    with pytest.raises(ApplicationError, match="the run store cannot be used") as caught:
        ActivityEnvironment().run(DriveActivity(go).drive, DriveOrder("home", "run-1"))
    failure = Failure()
    DefaultFailureConverter().to_failure(caught.value, DefaultPayloadConverter(), failure)
    assert "sk-secret" not in str(failure)
    assert (caught.value.type, caught.value.non_retryable) == ("StoreError", False)


@pytest.mark.slow
def test_who_has_no_model_leaves_the_count_of_its_edits_to_who_has_one(rig: Rig) -> None:
    rig.with_model([play.RIGHT, play.CARD])

    async def go() -> list[str]:
        run_id = await rig.begin()
        acts = replace(rig.adapters, model=None, writer="")
        done = await drive(acts, await rig.adapters.store.claim(run_id), inline)
        assert (done.halt, done.state.last) == ("needs:think", Step.audit)
        return [record.kind for record in await rig.adapters.journal.records(run_id) if record.call.step == "patch"]

    assert "tally" not in asyncio.run(go())
