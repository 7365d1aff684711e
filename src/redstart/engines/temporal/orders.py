"""The messages between a supervisor, its workers and clients: IDs and short texts. This module does not import
Temporal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from redstart.core.run_status import HaltReason

if TYPE_CHECKING:
    from redstart.core.run import RunState

THINK = "redstart-think"
ACT = "redstart-act"
QUEUES = {"think": THINK, "act": ACT}
"""The task queue of each privilege. Supervisors use the queue of `think`."""

SUPERVISOR = "redstart-run"
"""The type of the workflow, as the server knows it."""

ATTRIBUTES = ("RedstartTenant", "RedstartRepo", "RedstartMode", "RedstartOutcome")
"""Search attributes of a supervisor, each of type keyword."""
OUTCOME = ATTRIBUTES[3]

REASON = 300
"""Maximum characters of a stored reason."""


@dataclass(frozen=True)
class DriveOrder:
    """The run to drive."""

    tenant: str
    run_id: str


@dataclass(frozen=True)
class DriveReport:
    """How a drive ended. `halt` is none if the run itself has nothing more to do."""

    halt: HaltReason
    status: str
    result: str = ""
    reason: str = ""
    """With `trouble`: what is wrong, without secrets."""

    @property
    def has_ended(self) -> bool:
        # Earlier versions say `ended`, and their reports are in the histories of supervisors.
        return self.status in ("finished", "ended")

    @property
    def outcome(self) -> str:
        """The outcome in one word, for lists of runs."""
        return self.result if self.has_ended else self.halt.value or "waits"


@dataclass(frozen=True)
class SupervisorOrder:
    """The input of a supervisor, also when it restarts itself because its history has grown long."""

    order: DriveOrder
    pool: str
    """`think` or `act`: the privilege that the run needs next."""
    drives: int = 0
    """Number of activities so far."""
    history: int = 500
    """Number of activities after which the supervisor begins a new history."""


@dataclass(frozen=True)
class SupervisorState:
    """What a supervisor is doing."""

    phase: str
    """`queued` (a worker was requested and may be driving), `waits` for a person, or `ended`."""
    pool: str
    halt: HaltReason
    reason: str
    drives: int


def create_order(state: RunState) -> DriveOrder:
    return DriveOrder(state.spec.tenant, state.run_id)


def make_workflow_id(order: DriveOrder) -> str:
    """Return the name of the run's supervisor. A run has at most one."""
    return f"{order.tenant}/{order.run_id}"
