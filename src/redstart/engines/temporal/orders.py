"""What passes between a supervisor, its workers and who asks: ids and a few words. Nothing here imports Temporal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from redstart.core.standing import HaltReason

if TYPE_CHECKING:
    from redstart.core.run import RunState

THINK = "redstart-think"
ACT = "redstart-act"
QUEUES = {"think": THINK, "act": ACT}
"""The task queue of each privilege. Supervisors themselves are on that of `think`."""

SUPERVISOR = "redstart-run"
"""The workflow's type, as a server knows it."""

ATTRIBUTES = ("RedstartTenant", "RedstartRepo", "RedstartMode", "RedstartOutcome")
"""Search attributes of a supervisor, each a keyword."""
OUTCOME = ATTRIBUTES[3]

REASON = 300
"""Letters of a reason that are kept."""


@dataclass(frozen=True)
class DriveOrder:
    """Which run to go on with."""

    tenant: str
    run_id: str


@dataclass(frozen=True)
class DriveReport:
    """How a drive ended. `halt` is none where the run itself has nothing more to do."""

    halt: HaltReason
    status: str
    result: str = ""
    reason: str = ""
    """Of trouble: what is wrong, without anything secret."""

    @property
    def ended(self) -> bool:
        # Earlier versions say `ended`, and their reports are in the histories of supervisors.
        return self.status in ("finished", "ended")

    @property
    def outcome(self) -> str:
        """In a word, for who looks over many runs."""
        return self.result if self.ended else self.halt.value or "waits"


@dataclass(frozen=True)
class SupervisorOrder:
    """What a supervisor is started with, and what it hands to itself when its history has grown long."""

    order: DriveOrder
    pool: str
    """`think` or `act`: which privilege the run needs next."""
    drives: int = 0
    """How many activities there were before."""
    history: int = 500
    """Activities after which it begins a new history."""


@dataclass(frozen=True)
class SupervisorState:
    """What a supervisor is doing."""

    phase: str
    """`queued` (asked for a worker, which may be at it), `waits` for a person, or `ended`."""
    pool: str
    halt: HaltReason
    reason: str
    drives: int


def order_of(state: RunState) -> DriveOrder:
    return DriveOrder(state.spec.tenant, state.run_id)


def workflow_id(order: DriveOrder) -> str:
    """One run has one supervisor at the most: this is its name."""
    return f"{order.tenant}/{order.run_id}"
