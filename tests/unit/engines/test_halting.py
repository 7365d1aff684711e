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
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.engines.temporal.driver import DriveActivity
from redstart.engines.temporal.orders import DriveOrder
from redstart.flow.loop import StepAdvance
from support import rig as play
from support.rig import Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path / "snapshots")
    yield new_rig
    new_rig.trees.close()


@pytest.mark.slow
def test_draining_driver_stops_after_the_commit_and_another_continues(rig: Rig) -> None:
    model = rig.with_model([play.RIGHT, play.CARD])
    halt_reasons = iter(["", "", "drain"])

    async def go() -> tuple[StepAdvance, RunState]:
        run_id = await rig.begin()
        leaving = replace(rig.adapters, get_halt_reason=lambda: next(halt_reasons))
        stopped_advance = await drive(leaving, await rig.adapters.store.claim(run_id), run_inline)
        assert await rig.adapters.store.get_holder(run_id) is None, "the driver released the run"
        return stopped_advance, (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state

    stopped_advance, final_state = asyncio.run(go())
    assert (stopped_advance.halt, stopped_advance.state.last, stopped_advance.state.status) == (
        "drain",
        Step.retrieve,
        Status.running,
    )
    assert (final_state.result, len(model.questions)) == (Result.verified, 2)


def test_retried_error_keeps_its_message_but_not_its_cause() -> None:
    async def go(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
        raise StoreError("the run store cannot be used") from ValueError("UPDATE runs SET state = 'sk-secret'")

    with pytest.raises(ApplicationError, match="the run store cannot be used") as caught:
        ActivityEnvironment().run(DriveActivity(go).drive, DriveOrder("home", "run-1"))
    failure = Failure()
    DefaultFailureConverter().to_failure(caught.value, DefaultPayloadConverter(), failure)
    assert "sk-secret" not in str(failure)
    assert (caught.value.type, caught.value.non_retryable) == ("StoreError", False)


@pytest.mark.slow
def test_driver_without_a_model_records_no_edit_count(rig: Rig) -> None:
    rig.with_model([play.RIGHT, play.CARD])

    async def go() -> list[str]:
        run_id = await rig.begin()
        sandbox_adapters = replace(rig.adapters, model=None, writer="")
        report = await drive(sandbox_adapters, await rig.adapters.store.claim(run_id), run_inline)
        assert (report.halt, report.state.last) == ("needs:think", Step.audit)
        return [
            record.kind for record in await rig.adapters.journal.list_records(run_id) if record.call.step == "patch"
        ]

    assert "tally" not in asyncio.run(go())
