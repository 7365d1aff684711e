"""The status of a run after its drive ends for any reason; a cancellation does not wait for the step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from redstart.core.chat import Answer, Ask
from redstart.core.errors import ModelRefused, ModelUnreachable
from redstart.core.run import Result, RunState, Status, Step
from redstart.core.run_status import Control, DriveStop, HaltReason, RunRow, resolve_status
from redstart.engines import lease
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.flow.loop import STEPS, StepAdvance
from redstart.ports.store.port.runs import RunClaim
from redstart.testing.states import make_state
from support import rig as play
from support.engine_contract import ask_before_accept
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path / "snapshots")
    yield new_rig
    new_rig.trees.close()


class SilentModel:
    """Accepts a question and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, ask: Ask) -> Answer:
        del ask
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("the event is never set")


async def drive_run(rig: Rig, run_id: str, until: Step | None = None) -> StepAdvance:
    return await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline, until)


async def load_row(rig: Rig, run_id: str) -> RunRow:
    (row,) = await rig.adapters.store.list_runs(prefix=run_id)
    return row


async def drive_and_load_row(rig: Rig, until: Step | None = None) -> RunRow:
    """Drive a new run and return its row."""

    async def go() -> RunRow:
        run_id = await rig.begin()
        with suppress(ModelRefused, ModelUnreachable):
            await drive_run(rig, run_id, until)
        return await load_row(rig, run_id)

    return await go()


async def test_stopped_run_is_paused_with_its_last_step(rig: Rig) -> None:
    rig.with_model([play.RIGHT])
    row = await drive_and_load_row(rig, Step.patch)
    assert (row.holder, row.stop) == (None, DriveStop(Status.paused, "stopped after patch"))


async def test_run_ended_by_an_error_is_failed_with_the_reason(rig: Rig) -> None:
    rig.with_model([ModelRefused("openai:x refuses the key (401)")])
    row = await drive_and_load_row(rig)
    assert (row.holder, row.stop) == (None, DriveStop(Status.failed, "openai:x refuses the key (401)"))


async def test_finished_or_asking_run_has_no_stop_reason(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.with_model([play.RIGHT, play.CARD])
    finished_row = await drive_and_load_row(rig)
    monkeypatch.setitem(STEPS, Step.decide, ask_before_accept)
    rig.with_model([play.RIGHT, play.CARD])
    waiting_row = await drive_and_load_row(rig)
    assert [(row.status, row.stop) for row in (finished_row, waiting_row)] == [
        (Status.finished, None),
        (Status.needs_input, None),
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [(ModelUnreachable("the network is down"), Status.queued), (ModelRefused("no such model"), Status.failed)],
)
async def test_run_that_a_supervisor_retries_is_queued(rig: Rig, error: Exception, status: Status) -> None:
    rig.with_model([error])
    rig.adapters = replace(rig.adapters, supervised=True)
    assert (await drive_and_load_row(rig)).stop == DriveStop(status, str(error))


async def test_interrupted_run_is_paused_and_can_be_finished(rig: Rig) -> None:
    silent_model = SilentModel()

    async def interrupt() -> str:
        rig.adapters = replace(rig.adapters, model=silent_model)
        run_id = await rig.begin()
        driving = asyncio.create_task(drive_run(rig, run_id))
        await silent_model.asked.wait()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        assert (await load_row(rig, run_id)).stop == DriveStop(Status.paused, "interrupted")
        return run_id

    run_id = await interrupt()
    rig.with_model([play.RIGHT, play.CARD])
    assert (await drive_run(rig, run_id)).state.result is Result.verified


async def test_cancellation_ends_a_pending_question(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL", 0.01)
    silent_model = SilentModel()

    async def cancel() -> tuple[StepAdvance, RunRow]:
        rig.adapters = replace(rig.adapters, model=silent_model)
        run_id = await rig.begin()
        driving = asyncio.create_task(drive_run(rig, run_id))
        await silent_model.asked.wait()
        await rig.adapters.store.control(run_id, Control.cancel)
        async with asyncio.timeout(60):
            return await driving, await load_row(rig, run_id)

    result, row = await cancel()
    assert (result.halt, result.state.now.patch, row.holder) == ("cancel", None, None)
    assert resolve_status(row, has_driver=False) is Status.cancelled


async def test_lease_is_renewed_during_the_drive(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL", 0.01)
    monkeypatch.setattr(lease, "RENEWAL", 0.01)
    is_lease_renewed = SilentModel()

    async def was_renewed() -> bool:
        rig.adapters = replace(rig.adapters, model=is_lease_renewed)
        run_id = await rig.begin()
        driving = asyncio.create_task(drive_run(rig, run_id))
        await is_lease_renewed.asked.wait()
        beat_before = (await load_row(rig, run_id)).beat
        async with asyncio.timeout(60):
            while (await load_row(rig, run_id)).beat == beat_before:  # noqa: ASYNC110  (the store has no such event)
                await asyncio.sleep(0)
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        return True

    assert await was_renewed()


async def test_drive_returns_the_finished_state(rig: Rig) -> None:
    rig.with_model([play.RIGHT, play.CARD])

    async def go() -> tuple[RunState, RunState]:
        run_id = await rig.begin()
        advance = await drive_run(rig, run_id)
        return advance.state, await rig.adapters.store.load(run_id)

    returned_state, stored = await go()
    assert returned_state == stored


@pytest.mark.parametrize(
    ("error", "supervised", "stop"),
    [
        (asyncio.CancelledError(), True, DriveStop(Status.queued, "interrupted")),
        (asyncio.CancelledError(), False, DriveStop(Status.paused, "interrupted")),
        (ModelUnreachable("down"), True, DriveStop(Status.queued, "down")),
        (ModelUnreachable("down"), False, DriveStop(Status.failed, "down")),
        (ModelRefused("no key"), True, DriveStop(Status.failed, "no key")),
        (OSError("/home/me/secret"), True, DriveStop(Status.queued, "OSError")),
        (ValueError("a secret"), True, DriveStop(Status.failed, "ValueError")),
        (ModelRefused("x" * 900), False, DriveStop(Status.failed, "x" * 500)),
    ],
)
def test_error_decides_how_the_run_stands(error: BaseException, supervised: bool, stop: DriveStop) -> None:
    assert lease.resolve_error_stop(error, supervised=supervised) == stop


class Renewals:
    """A store that counts the checks and renewals of a lease, and cancels the run at the last check."""

    def __init__(self, checks: int) -> None:
        self.left, self.renewed_after = checks, list[int]()
        self._checks = checks

    async def get_control(self, run_id: str) -> Control:
        self.left -= 1
        return Control.none if self.left else Control.cancel

    async def renew(self, run_id: str, fence: int) -> None:
        self.renewed_after.append(self._checks - self.left)

    async def load(self, run_id: str) -> RunState:
        return make_state(run_id=run_id)


async def test_lease_is_renewed_at_every_tenth_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL", 0.001)
    monkeypatch.setattr(lease, "RENEWAL", 0.003)
    store, state = Renewals(10), make_state()

    async def wait() -> StepAdvance:
        await asyncio.Event().wait()
        raise AssertionError("the event is never set")

    advance = await lease.hold(cast(Any, store), RunClaim(state, 1), wait())
    assert advance == StepAdvance(state, HaltReason.cancel)
    assert store.renewed_after == [3, 6, 9]


async def test_drive_that_ends_itself_is_no_cancellation() -> None:
    async def cancel() -> StepAdvance:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await lease.hold(cast(Any, Renewals(10)), RunClaim(make_state(), 1), cancel())
