"""The activity: one drive of one run on this worker, in a thread and an event loop of its own."""

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
from redstart.core.standing import HaltReason
from redstart.engines.temporal.orders import REASON, DriveOrder, DriveReport
from redstart.engines.temporal.supervisor import DRIVE
from redstart.flow.loop import StepAdvance

_log = logging.getLogger(__name__)

BEAT = 5.0
"""Seconds between two heartbeats."""


class DriveFunction(Protocol):
    def __call__(self, order: DriveOrder, halting: Callable[[], HaltReason]) -> Awaitable[StepAdvance]:
        """Claims the run and drives it as far as this worker can; `halting` says between two steps whether to stop.

        Raises what machinery raises.
        """
        ...


class DriveActivity:
    """What a worker's activity does with an order. `go` is how a run is driven here."""

    def __init__(self, go: DriveFunction) -> None:
        self._go = go
        self._draining = threading.Event()

    def drain(self) -> None:
        """From now on every drive ends after the step that it is at."""
        self._draining.set()

    @activity.defn(name=DRIVE, no_thread_cancel_exception=True)
    def drive(self, order: DriveOrder) -> DriveReport:
        """To the end of the run, or as far as this worker can.

        Trouble of a machine, a store or an endpoint is raised, and the server has it tried again. What a person has to
        mend, and a run that somebody else took over, are told in the report.
        """
        try:
            done = asyncio.run(self._beating(order))
        except Fenced:
            return DriveReport(HaltReason.fenced, "running")
        except (ModelRefused, ConfigError, PolicyViolation, ReplayDiverged) as error:
            return _trouble(error)
        except (PortError, OSError) as error:
            # Without its cause, which would go into the history with all its text.
            raise ApplicationError(_words(error), type=type(error).__name__) from None
        except ApplicationError:
            raise
        except Exception as error:
            # A mistake of ours: tried again it would fail again, so the run waits for who mends it.
            _log.exception("run %s", order.run_id)
            return _trouble(error)
        state = done.state
        return DriveReport(done.halt, state.status.value, state.result.value if state.result else "")

    async def _beating(self, order: DriveOrder) -> StepAdvance:
        pulse = _Pulse(asyncio.current_task())

        def halting() -> HaltReason:
            return pulse.asked or (HaltReason.drain if self._draining.is_set() else HaltReason.none)

        with pulse:
            try:
                return await self._go(order, halting)
            except asyncio.CancelledError:
                # The server takes this driver for lost, or the worker had to end: another one goes on.
                raise ApplicationError("the drive was broken off", type="BrokenOff") from None


class _Pulse:
    """Tells the server that the drive goes on, from a thread of its own: the drive may be busy for minutes.

    Where the server does not know the drive any more, the drive is cancelled.
    """

    def __init__(self, drive: asyncio.Task[object] | None) -> None:
        self._drive, self._loop = drive, asyncio.get_running_loop()
        self._over = threading.Event()
        self._thread = threading.Thread(target=contextvars.copy_context().run, args=(self._beat,), daemon=True)
        self.asked = HaltReason.none
        """Why the supervisor wants the drive to end after the step at hand."""

    def __enter__(self) -> _Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.is_set():
            with suppress(TimeoutError):  # The worker is too busy to pass it on: the next one may come through.
                activity.heartbeat()
            self._over.wait(BEAT)
            if not activity.is_cancelled():
                continue
            details = activity.cancellation_details()
            if details is not None and details.cancel_requested:
                self.asked = HaltReason.stopped
            elif self._drive is not None:
                self._loop.call_soon_threadsafe(self._drive.cancel)
                return


def _trouble(error: Exception) -> DriveReport:
    return DriveReport(HaltReason.trouble, "running", reason=_words(error))


def _words(error: Exception) -> str:
    """What is wrong. The text of an error that is none of ours may hold anything, so only its kind is told."""
    if not isinstance(error, RedstartError):
        return f"{type(error).__name__} on the worker; its log tells more"
    return f"{error}. {error.remedy}".rstrip(". ")[:REASON]
