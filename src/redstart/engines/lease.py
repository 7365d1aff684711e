"""The lease of a driven run: renewed during the drive, and given up at once if a person cancels the run."""

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
from redstart.core.run_status import LEASE, Control, DriveStop, HaltReason
from redstart.flow.loop import StepAdvance
from redstart.ports.store.port.runs import RunClaim, Store

POLL = 1.0
"""Seconds between two checks whether the run was cancelled."""
RENEWAL = LEASE / 10
REASON = 500
"""Maximum characters of a stored reason."""
MENDED_BY_A_PERSON = (ModelRefused, ConfigError, PolicyViolation, ReplayDiverged)
"""Errors that a person must solve: they recur each time the run is driven."""


async def hold(store: Store, claim: RunClaim, drive: Coroutine[Any, Any, StepAdvance]) -> StepAdvance:
    """Drive the run under its lease. If a person cancels it, the drive stops in the middle of a step, which is
    discarded."""
    driving = asyncio.create_task(drive)
    keeping = asyncio.create_task(_keep(store, claim, driving))
    try:
        return await driving
    except asyncio.CancelledError:
        current_task = asyncio.current_task()
        by_a_person = keeping.done() and keeping.exception() is None
        if not by_a_person or (current_task is not None and current_task.cancelling()):
            raise
        return StepAdvance(await store.load(claim.state.run_id), HaltReason.cancel)
    finally:
        keeping.cancel()


async def _keep(store: Store, claim: RunClaim, driving: asyncio.Task[StepAdvance]) -> None:
    """Renew the lease during the drive. Returns only after it has cancelled the drive."""
    run_id, elapsed = claim.state.run_id, 0.0
    while True:
        await asyncio.sleep(POLL)
        elapsed += POLL
        with suppress(StoreError):  # The drive itself reports what is wrong with the store.
            if await store.get_control(run_id) is Control.cancel:
                driving.cancel()
                return
            if elapsed >= RENEWAL:
                await store.renew(run_id, claim.fence)
                elapsed = 0.0


def resolve_error_stop(error: BaseException, *, supervised: bool) -> DriveStop:
    """Return how a run stands after its drive ended with this error. A supervisor retries if that may help."""
    if not isinstance(error, Exception):
        return DriveStop(Status.queued if supervised else Status.paused, "interrupted")
    if supervised and isinstance(error, PortError | OSError) and not isinstance(error, MENDED_BY_A_PERSON):
        return DriveStop(Status.queued, _describe_error(error))
    return DriveStop(Status.failed, _describe_error(error))


def _describe_error(error: Exception) -> str:
    """Describe the error. The text of a foreign error may contain anything, so only its type is kept."""
    return str(error)[:REASON] if isinstance(error, RedstartError) else type(error).__name__
