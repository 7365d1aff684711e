"""How a run stands: what is stored of it, who drives it, what a person asked of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from redstart.core.run import Status
from redstart.core.run_options import RunOptions

LEASE = 300.0
"""Seconds after which a driver that has not renewed its lease is taken for dead."""


class Control(StrEnum):
    """What a person asks of a run. A pause waits for the end of the step at hand, a cancellation does not."""

    none = ""
    pause = "pause"
    cancel = "cancel"


class HaltReason(StrEnum):
    """Why a driver stopped short of the run's end."""

    none = ""
    pause = "pause"
    cancel = "cancel"
    until = "until"
    """The step to stop after is committed."""
    errand_waits = "an errand waits"
    """A child run needs input."""
    needs_think = "needs:think"
    needs_act = "needs:act"
    """The next call needs a privilege that the driver does not have."""
    drain = "drain"
    """The worker is going, and another goes on."""
    stopped = "stopped"
    """The driver was asked to end after the step at hand; its supervisor knows why."""
    fenced = "fenced"
    """Somebody else has taken the run over."""
    let_go = "let go"
    """The run was taken back: whoever did that drives it."""
    trouble = "trouble"
    """Something that a person has to mend; the reason says what."""
    end_of_record = "end of the record"
    """A replay has done all that was recorded."""

    @property
    def needed(self) -> str:
        """The privilege that is needed: `think`, `act`, or none."""
        return {HaltReason.needs_think: "think", HaltReason.needs_act: "act"}.get(self, "")


class RunHolder(NamedTuple):
    """The process that claimed a run and has not given it back: it may be dead."""

    host: str
    pid: int


class DriveStop(NamedTuple):
    """How the last drive of a run stopped short of its end: `queued`, `paused`, `needs_input` or `failed`."""

    status: Status
    reason: str = ""


class RunRow(NamedTuple):
    """A run as lists show it. `status` is what the last commit stored; see `status_of`."""

    run_id: str
    mode: str
    status: Status
    result: str
    goal: str
    repo: str
    folder: str
    created: datetime
    updated: datetime
    control: Control = Control.none
    holder: RunHolder | None = None
    beat: float = 0.0
    """When the holder last renewed its lease, in seconds since the epoch."""
    stop: DriveStop | None = None
    options: RunOptions | None = None
    """None for a run of an earlier version, and for a child run: that of its parent counts."""


def is_driven(row: RunRow, *, now: float, host: str, is_alive: Callable[[int], bool]) -> bool:
    """Whether a living process drives the run. Of a process on another host only the lease is known."""
    holder = row.holder
    if holder is None or now - row.beat > LEASE:
        return False
    return holder.host != host or is_alive(holder.pid)


def status_of(row: RunRow, *, driven: bool) -> Status:
    """The true status: a run that nobody drives is not running, whatever its last commit says."""
    if row.status is Status.finished:
        return Status.finished
    if driven:
        return Status.running
    if row.control is Control.cancel:
        return Status.cancelled
    if row.status is Status.needs_input:
        return Status.needs_input
    return row.stop.status if row.stop is not None else Status.paused
