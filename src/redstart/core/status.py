"""How a run stands and how it ended."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """How a run stands. A step's commit stores `running`, `paused`, `needs_input` or `finished`.

    The others follow from who drives the run, how the last drive stopped and what people asked for; see
    `redstart.core.standing.status_of`.
    """

    queued = "queued"
    """The fleet has it, and no worker is at it."""
    running = "running"
    paused = "paused"
    """Nobody drives it; it can be resumed. Where it is stored, the run waits for its child runs."""
    needs_input = "needs_input"
    finished = "finished"
    failed = "failed"
    """An error ended its last drive; it can be resumed."""
    cancelled = "cancelled"


class Result(StrEnum):
    """How a run ended. Its exit code is in `redstart.app.exits`."""

    verified = "verified"
    unproven = "unproven"
    """The tests pass by their own report, and Redstart cannot prove that they can still fail."""
    already_green = "already_green"
    unsolved = "unsolved"
    stuck = "stuck"
    capped = "capped"
    no_tests = "no_tests"
    environment = "environment"
    refused = "refused"
    needs_human = "needs_human"
    reported = "reported"
    """An audit: what was found is told, and nothing of it is more than the user accepts."""
    found = "found"
    """An audit with new findings that are."""
