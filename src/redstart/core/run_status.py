"""The status of a run: what is stored about it, which process drives it, and what a person requested."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from redstart.core.run import Status
from redstart.core.run_options import RunOptions

LEASE = 300.0
"""Seconds without a renewal after which a driver is considered dead."""


class Control(StrEnum):
    """A person's request to a run. A pause waits for the end of the current step, a cancellation does not."""

    none = ""
    pause = "pause"
    cancel = "cancel"


class HaltReason(StrEnum):
    """Why a driver stopped before the end of the run."""

    none = ""
    pause = "pause"
    cancel = "cancel"
    until = "until"
    """The step to stop after was committed."""
    errand_waits = "an errand waits"
    """A child run needs input."""
    needs_think = "needs:think"
    needs_act = "needs:act"
    """The next call requires a privilege that the driver does not have."""
    drain = "drain"
    """The worker is shutting down; another one continues the run."""
    stopped = "stopped"
    """The driver was asked to stop after the current step; its supervisor knows why."""
    fenced = "fenced"
    """Another process has taken the run over."""
    let_go = "let go"
    """The run was taken back, and whoever took it back drives it."""
    trouble = "trouble"
    """A problem that a person must solve; the reason describes it."""
    end_of_record = "end of the record"
    """A replay has repeated everything that was recorded."""

    @property
    def needed(self) -> str:
        """The missing privilege: `think`, `act`, or empty."""
        return {HaltReason.needs_think: "think", HaltReason.needs_act: "act"}.get(self, "")


class RunHolder(NamedTuple):
    """The process that claimed a run and has not released it. It may be dead."""

    host: str
    pid: int


class DriveStop(NamedTuple):
    """How the last drive stopped before the end of the run: `queued`, `paused`, `needs_input` or `failed`."""

    status: Status
    reason: str = ""


class RunRow(NamedTuple):
    """A run as lists show it. `status` is what the last commit stored; see `resolve_status`."""

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
    """None for a run of an earlier version, and for a child run, to which its parent's options apply."""


def is_driven(row: RunRow, *, now: float, host: str, is_alive: Callable[[int], bool]) -> bool:
    """Return whether a live process drives the run. For a process on another host, only the lease is known."""
    holder = row.holder
    if holder is None or now - row.beat > LEASE:
        return False
    return holder.host != host or is_alive(holder.pid)


def resolve_status(row: RunRow, *, has_driver: bool) -> Status:
    """Resolve the actual status: if no process drives a run, it is not running, even if its last commit says so."""
    if row.status is Status.finished:
        return Status.finished
    if has_driver:
        return Status.running
    if row.control is Control.cancel:
        return Status.cancelled
    if row.status is Status.needs_input:
        return Status.needs_input
    return row.stop.status if row.stop is not None else Status.paused
