"""The activity: one drive of one run on this worker, in its own thread and event loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from temporalio import activity
from temporalio.exceptions import ApplicationError

from redstart.core.errors import (
    ConfigError,
    Fenced,
    ModelRefused,
    PolicyViolation,
    PortError,
    RedstartError,
    ReplayDiverged,
)
from redstart.core.run_status import HaltReason
from redstart.engines.temporal.orders import REASON, DriveOrder, DriveReport
from redstart.engines.temporal.supervisor import DRIVE
from redstart.flow.loop import StepAdvance

_log = logging.getLogger(__name__)

BEAT = 5.0
"""Seconds between two heartbeats."""


class DriveFunction(Protocol):
    def __call__(self, order: DriveOrder, get_halt_reason: Callable[[], HaltReason]) -> Awaitable[StepAdvance]:
        """Claim the run and drive it as far as this worker can. Between two steps, `get_halt_reason` says whether to
        stop.

        Raises the errors of the adapters.
        """
        ...


class DriveActivity:
    """The activity with which a worker handles an order. The given function drives a run."""

    def __init__(self, go: DriveFunction) -> None:
        self._go = go
        self._draining = threading.Event()

    def drain(self) -> None:
        """End every drive after its current step from now on."""
        self._draining.set()

    @activity.defn(name=DRIVE, no_thread_cancel_exception=True)
    def drive(self, order: DriveOrder) -> DriveReport:
        """Drive the run to its end, or as far as this worker can.

        Problems of a machine, a store or an endpoint are raised, and the server retries. Problems that a person must
        solve, and a run that another process took over, are reported.
        """
        try:
            result = asyncio.run(self._drive_with_heartbeats(order))
        except Fenced:
            return DriveReport(HaltReason.fenced, "running")
        except (ModelRefused, ConfigError, PolicyViolation, ReplayDiverged) as error:
            return _make_trouble_report(error)
        except (PortError, OSError) as error:
            # Without the cause, whose full text would go into the history.
            raise ApplicationError(_describe_error(error), type=type(error).__name__) from None
        except ApplicationError:
            raise
        except Exception as error:
            # A defect of ours: a retry would fail again, so the run waits until it is fixed.
            _log.exception("run %s", order.run_id)
            return _make_trouble_report(error)
        state = result.state
        return DriveReport(result.halt, state.status.value, state.result.value if state.result else "")

    async def _drive_with_heartbeats(self, order: DriveOrder) -> StepAdvance:
        pulse = _Pulse(asyncio.current_task())

        def get_halt_reason() -> HaltReason:
            return pulse.halt_reason or (HaltReason.drain if self._draining.is_set() else HaltReason.none)

        with pulse:
            try:
                return await self._go(order, get_halt_reason)
            except asyncio.CancelledError:
                # The server considers this driver lost, or the worker had to end: another one continues.
                raise ApplicationError("the drive was interrupted", type="BrokenOff") from None


class _Pulse:
    """Sends heartbeats to the server from its own thread, because the drive may be busy for minutes.

    If the server no longer knows the drive, the drive is cancelled.
    """

    def __init__(self, drive: asyncio.Task[object] | None) -> None:
        self._drive, self._loop = drive, asyncio.get_running_loop()
        self._stop_event = threading.Event()
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._send_heartbeats,), daemon=True
        )
        self.halt_reason = HaltReason.none
        """Why the supervisor wants the drive to end after the current step."""

    def __enter__(self) -> _Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_event.set()
        self._thread.join()

    def _send_heartbeats(self) -> None:
        while not self._stop_event.is_set():
            with suppress(TimeoutError):  # The worker is too busy to send it: the next one may succeed.
                activity.heartbeat()
            self._stop_event.wait(BEAT)
            if not activity.is_cancelled():
                continue
            details = activity.cancellation_details()
            if details is not None and details.cancel_requested:
                self.halt_reason = HaltReason.stopped
            elif self._drive is not None:
                self._loop.call_soon_threadsafe(self._drive.cancel)
                return


def _make_trouble_report(error: Exception) -> DriveReport:
    return DriveReport(HaltReason.trouble, "running", reason=_describe_error(error))


def _describe_error(error: Exception) -> str:
    """Describe the error. The text of a foreign error may contain anything, so only its type is reported."""
    if not isinstance(error, RedstartError):
        return f"{type(error).__name__} on the worker; see its log"
    return f"{error}. {error.remedy}".rstrip(". ")[:REASON]
