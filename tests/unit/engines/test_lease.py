"""The status of a run after its drive ends for any reason; a cancellation does not wait for the step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.chat import Answer, Ask
from redstart.core.errors import ModelRefused, ModelUnreachable
from redstart.core.run import Result, RunState, Status, Step
from redstart.core.standing import Control, DriveStop, RunRow, status_of
from redstart.engines import lease
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.flow.loop import STEPS, StepAdvance
from support import rig as play
from support.engine_contract import asking
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


class SilentModel:
    """Accepts a question and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, ask: Ask) -> Answer:
        del ask
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("the event is never set")


async def driven(rig: Rig, run_id: str, until: Step | None = None) -> StepAdvance:
    return await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline, until)


async def row_of(rig: Rig, run_id: str) -> RunRow:
    (row,) = await rig.adapters.store.runs(prefix=run_id)
    return row


def after(rig: Rig, until: Step | None = None) -> RunRow:
    """Drive a new run and return its row."""

    async def go() -> RunRow:
        run_id = await rig.begin()
        with suppress(ModelRefused, ModelUnreachable):
            await driven(rig, run_id, until)
        return await row_of(rig, run_id)

    return asyncio.run(go())


def test_a_run_that_was_stopped_is_paused_and_says_where(rig: Rig) -> None:
    rig.with_model([play.RIGHT])
    row = after(rig, Step.patch)
    assert (row.holder, row.stop) == (None, DriveStop(Status.paused, "stopped after patch"))


def test_a_run_that_an_error_ended_has_failed_for_that_reason(rig: Rig) -> None:
    rig.with_model([ModelRefused("openai:x refuses the key (401)")])
    row = after(rig)
    assert (row.holder, row.stop) == (None, DriveStop(Status.failed, "openai:x refuses the key (401)"))


def test_a_run_that_finished_or_asks_did_not_stop(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.with_model([play.RIGHT, play.CARD])
    finished = after(rig)
    monkeypatch.setitem(STEPS, Step.decide, asking)
    rig.with_model([play.RIGHT, play.CARD])
    asks = after(rig)
    assert [(row.status, row.stop) for row in (finished, asks)] == [(Status.finished, None), (Status.needs_input, None)]


@pytest.mark.parametrize(
    ("error", "status"),
    [(ModelUnreachable("the network is down"), Status.queued), (ModelRefused("no such model"), Status.failed)],
)
def test_what_a_supervisor_tries_again_is_queued(rig: Rig, error: Exception, status: Status) -> None:
    rig.with_model([error])
    rig.adapters = replace(rig.adapters, supervised=True)
    assert after(rig).stop == DriveStop(status, str(error))


def test_an_interrupted_run_is_paused_and_can_be_finished(rig: Rig) -> None:
    silent = SilentModel()

    async def interrupt() -> str:
        rig.adapters = replace(rig.adapters, model=silent)
        run_id = await rig.begin()
        driving = asyncio.create_task(driven(rig, run_id))
        await silent.asked.wait()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        assert (await row_of(rig, run_id)).stop == DriveStop(Status.paused, "interrupted")
        return run_id

    run_id = asyncio.run(interrupt())
    rig.with_model([play.RIGHT, play.CARD])
    assert asyncio.run(driven(rig, run_id)).state.result is Result.verified


def test_a_cancellation_ends_a_question_that_is_open(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL", 0.01)
    silent = SilentModel()

    async def cancel() -> tuple[StepAdvance, RunRow]:
        rig.adapters = replace(rig.adapters, model=silent)
        run_id = await rig.begin()
        driving = asyncio.create_task(driven(rig, run_id))
        await silent.asked.wait()
        await rig.adapters.store.control(run_id, Control.cancel)
        async with asyncio.timeout(60):
            return await driving, await row_of(rig, run_id)

    done, row = asyncio.run(cancel())
    assert (done.halt, done.state.now.patch, row.holder) == ("cancel", None, None)
    assert status_of(row, driven=False) is Status.cancelled


def test_a_lease_is_renewed_while_the_drive_lasts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL", 0.01)
    monkeypatch.setattr(lease, "RENEWAL", 0.01)
    silent = SilentModel()

    async def renewed() -> bool:
        rig.adapters = replace(rig.adapters, model=silent)
        run_id = await rig.begin()
        driving = asyncio.create_task(driven(rig, run_id))
        await silent.asked.wait()
        before = (await row_of(rig, run_id)).beat
        async with asyncio.timeout(60):
            while (await row_of(rig, run_id)).beat == before:  # noqa: ASYNC110  (the store has no such event)
                await asyncio.sleep(0)
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        return True

    assert asyncio.run(renewed())


def test_a_finished_state_is_what_the_drive_returns(rig: Rig) -> None:
    rig.with_model([play.RIGHT, play.CARD])

    async def go() -> tuple[RunState, RunState]:
        run_id = await rig.begin()
        done = await driven(rig, run_id)
        return done.state, await rig.adapters.store.load(run_id)

    returned, stored = asyncio.run(go())
    assert returned == stored
