"""The lease of a run that is being driven: renewed while it is, given up at once where a person cancels the run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from redstart.core.errors import (
    ConfigError,
    ModelRefused,
    PolicyViolation,
    PortError,
    RedstartError,
    ReplayDiverged,
    StoreError,
)
from redstart.core.run import Status
from redstart.core.standing import LEASE, Control, DriveStop, HaltReason
from redstart.flow.loop import StepAdvance
from redstart.ports.store.port.runs import RunClaim, Store

POLL = 1.0
"""Seconds between two looks at whether the run was cancelled."""
RENEWAL = LEASE / 10
REASON = 500
"""Letters of a reason that are kept."""
MENDED_BY_A_PERSON = (ModelRefused, ConfigError, PolicyViolation, ReplayDiverged)
"""Errors that come again however often a run is driven."""


async def hold(store: Store, claim: RunClaim, drive: Coroutine[Any, Any, StepAdvance]) -> StepAdvance:
    """Drives the run under its lease. Cancelled by a person, it stops in the middle of a step, which is not kept."""
    driving = asyncio.create_task(drive)
    keeping = asyncio.create_task(_keep(store, claim, driving))
    try:
        return await driving
    except asyncio.CancelledError:
        here = asyncio.current_task()
        by_a_person = keeping.done() and keeping.exception() is None
        if not by_a_person or (here is not None and here.cancelling()):
            raise
        return StepAdvance(await store.load(claim.state.run_id), HaltReason.cancel)
    finally:
        keeping.cancel()


async def _keep(store: Store, claim: RunClaim, driving: asyncio.Task[StepAdvance]) -> None:
    """Renews the lease for as long as the drive lasts; returns where it had to end it."""
    run_id, since = claim.state.run_id, 0.0
    while True:
        await asyncio.sleep(POLL)
        since += POLL
        with suppress(StoreError):  # The drive itself says what is wrong with the store.
            if await store.asked(run_id) is Control.cancel:
                driving.cancel()
                return
            if since >= RENEWAL:
                await store.renew(run_id, claim.fence)
                since = 0.0


def stop_of_error(error: BaseException, *, supervised: bool) -> DriveStop:
    """How a run stands whose drive was ended by this. A supervisor has it driven again where that may help."""
    if not isinstance(error, Exception):
        return DriveStop(Status.queued if supervised else Status.paused, "interrupted")
    if supervised and isinstance(error, PortError | OSError) and not isinstance(error, MENDED_BY_A_PERSON):
        return DriveStop(Status.queued, _words(error))
    return DriveStop(Status.failed, _words(error))


def _words(error: Exception) -> str:
    """What is wrong. The text of an error that is none of ours may hold anything, so only its kind is kept."""
    return str(error)[:REASON] if isinstance(error, RedstartError) else type(error).__name__
