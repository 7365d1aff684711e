"""The port to stored runs: their states, steps, events, leases, and requests from people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from redstart.core.change import EditKind, EditRecord, FitCounts
from redstart.core.events import Event
from redstart.core.learning import NewMemories
from redstart.core.run import RunState, Step
from redstart.core.run_options import RunOptions
from redstart.core.run_status import Control, DriveStop, RunHolder, RunRow
from redstart.ports.store.port.journal import JournalRecord


class RunClaim(NamedTuple):
    state: RunState
    fence: int


class StepCommit(NamedTuple):
    """One completed step."""

    before: RunState
    after: RunState
    step: Step
    artifact: str
    """The step's artifact as JSON."""
    events: Sequence[Event]
    memories: NewMemories | None

    @property
    def edits(self) -> tuple[EditRecord, ...]:
        """The outcome of each edit, if the step is `apply`; else empty."""
        applied = self.after.now.apply
        return applied.rungs if self.step is Step.apply and applied is not None else ()

    @property
    def model(self) -> str:
        """The model that wrote the edits; empty if it is unknown."""
        patch = self.after.now.patch
        return patch.model if patch is not None else ""


class StepRow(NamedTuple):
    """A committed step. `state` is the whole state after it. Steps of older versions are upgraded when read."""

    version: int
    attempt: int
    step: Step
    artifact: str
    state: RunState


class PersonWord(StrEnum):
    """The kinds of messages that a person can send to a run."""

    say = "say"
    """Advice in free text."""
    accept = "accept"
    reject = "reject"


class PersonMessage(NamedTuple):
    """A message from a person to a run."""

    word: PersonWord
    text: str
    version: int
    """The version of the run that an answer refers to: a run may ask more than once."""
    time: datetime


class PastRun(NamedTuple):
    """A run with those of its records that statistics over many runs use."""

    row: RunRow
    ends: Sequence[Event]
    """Its events of the phase `end`, in order."""
    reproduced: Sequence[str]
    """The artifacts of its `reproduce` steps as JSON, in order."""
    answers: Sequence[JournalRecord]
    """Its journaled model calls, as `Journal.list_records` returns them."""


class Store(Protocol):
    """The source of truth about runs. Every write except `create`, `control`, `tell`, `mark` and `choose` is fenced."""

    async def create(
        self, state: RunState, *, folder: str, created: datetime, options: RunOptions | None = None
    ) -> None:
        """Store a new run at version 0. `folder` is where it was started, to find it again on this machine.

        Raises `StoreError` if the ID is already used.
        """
        ...

    async def claim(self, run_id: str) -> RunClaim:
        """Take the run over: its fence increases by one, and holders of a smaller fence can no longer write.

        Its lease begins, and the previous stop is cleared.
        Raises `StoreError` for an unknown run, and `NewerFormat`, with nothing changed, for a run that a newer version
        of Redstart stored.
        """
        ...

    async def renew(self, run_id: str, fence: int) -> None:
        """Renew the lease. Does nothing if the run was taken over or is unknown."""
        ...

    async def release(self, run_id: str, fence: int, stop: DriveStop | None = None) -> None:
        """Release the run: nobody drives it now, because of `stop`. Does nothing if it was taken over or is unknown."""
        ...

    async def mark(self, run_id: str, stop: DriveStop) -> None:
        """Record the state of a run that nobody drives. Does nothing if somebody drives it or it is unknown."""
        ...

    async def choose(self, run_id: str, options: RunOptions) -> None:
        """Store the options that the run uses from now on. Raises `StoreError` for an unknown run."""
        ...

    async def get_holder(self, run_id: str) -> RunHolder | None:
        """Return who claimed the run last, or None if it was never claimed, was released, or is unknown."""
        ...

    async def commit(self, commit: StepCommit, fence: int) -> Control:
        """Write state, artifact, events and memories in one transaction, and return the control that people requested.

        Memories are `remembered` and the outcomes of the edits; an attempt writes each of them only once.
        Raises `Fenced`, with nothing written, if the run's fence is not `fence` or its version is not
        `commit.before.version`.
        """
        ...

    async def load(self, run_id: str) -> RunState:
        """Load the state after the last commit. Raises `StoreError` for an unknown run."""
        ...

    async def load_first(self, run_id: str) -> RunState:
        """Load the state with which the run was created."""
        ...

    async def list_steps(self, run_id: str) -> list[StepRow]:
        """List every committed step, in order."""
        ...

    async def list_events(self, run_id: str, after: int = -1) -> list[Event]:
        """List the committed events with a `seq` greater than `after`, in order."""
        ...

    async def list_runs(
        self, *, folder: str | None = None, prefix: str = "", limit: int = 50, include_child_runs: bool = False
    ) -> list[RunRow]:
        """List runs, newest first; optionally those of one folder, or whose ID starts with `prefix`.

        Child runs are included with `include_child_runs`, or if `prefix` contains the dot of a child run's ID.
        """
        ...

    def iter_past_runs(self, since: datetime | None = None) -> AsyncIterator[PastRun]:
        """Iterate over all runs created since then, oldest first, including child runs.

        Runs are read in pages and without their states: ten thousand runs need neither as many queries nor space in
        memory at once. Each run is as it was when it was read.
        """
        ...

    async def control(self, run_id: str, control: Control) -> None:
        """Ask the run's driver to pause after the current step, or to cancel the run."""
        ...

    async def get_control(self, run_id: str) -> Control:
        """Return the last requested control. Raises `StoreError` for an unknown run."""
        ...

    async def send_message(self, run_id: str, kind: PersonWord, text: str, *, version: int) -> None:
        """Store a message from a person to the run, whoever drives it. Raises `StoreError` for an unknown run."""
        ...

    async def list_messages(self, run_id: str) -> list[PersonMessage]:
        """List all messages from people to the run, in order."""
        ...

    async def count_fits(self, model: str, *, tenant: str) -> dict[EditKind, FitCounts]:
        """Count, by form, how this model's edits fitted in all runs of this tenant. Unused forms are left out."""
        ...
