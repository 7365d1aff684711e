"""The port to stored runs: their states, steps, events, leases, and what people ask of them."""

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
from redstart.core.standing import Control, DriveStop, RunHolder, RunRow
from redstart.ports.store.port.journal import JournalRecord


class RunClaim(NamedTuple):
    state: RunState
    fence: int


class StepCommit(NamedTuple):
    """One step, done."""

    before: RunState
    after: RunState
    step: Step
    artifact: str
    """The step's artifact as JSON."""
    events: Sequence[Event]
    remembered: NewMemories | None

    @property
    def edits(self) -> tuple[EditRecord, ...]:
        """What became of each edit, where the step is the one that tells: `apply`."""
        applied = self.after.now.apply
        return applied.rungs if self.step is Step.apply and applied is not None else ()

    @property
    def model(self) -> str:
        """The model that gave the edits; empty where it is not known."""
        patch = self.after.now.patch
        return patch.model if patch is not None else ""


class StepRow(NamedTuple):
    """A committed step: `state` is the whole state after it. Steps of older versions read as this version's."""

    version: int
    attempt: int
    step: Step
    artifact: str
    state: RunState


class PersonWord(StrEnum):
    """What a person can tell a run."""

    say = "say"
    """Something to go by, in words."""
    accept = "accept"
    reject = "reject"


class PersonMessage(NamedTuple):
    """What a person told a run."""

    word: PersonWord
    text: str
    version: int
    """The run's version that an answer is to: a run may ask more than once."""
    time: datetime


class PastRun(NamedTuple):
    """A run and what it left, as much of it as is counted over many runs."""

    row: RunRow
    ends: Sequence[Event]
    """Its events of the phase `end`, in order."""
    reproduced: Sequence[str]
    """The artifacts of its `reproduce` as JSON, in order."""
    answers: Sequence[JournalRecord]
    """Its journaled calls of models, as `Journal.records` gives them."""


class Store(Protocol):
    """The truth about runs. Every write but `create`, `control`, `tell`, `mark` and `choose` is fenced."""

    async def create(
        self, state: RunState, *, folder: str, created: datetime, options: RunOptions | None = None
    ) -> None:
        """Keeps a new run at version 0. `folder` is where it was started, for finding it again on this machine.

        Raises `StoreError` if the id is taken.
        """
        ...

    async def claim(self, run_id: str) -> RunClaim:
        """Takes the run over: its fence grows by one, and whoever held a smaller one cannot write any more.

        Its lease begins, and how the drive before stopped is forgotten.
        Raises `StoreError` for an unknown run, and `NewerFormat`, having changed nothing, for one that a newer version
        of Redstart stored.
        """
        ...

    async def renew(self, run_id: str, fence: int) -> None:
        """Renews the lease. Does nothing if the run was taken over, or is unknown."""
        ...

    async def release(self, run_id: str, fence: int, stop: DriveStop | None = None) -> None:
        """Gives the run back: nobody drives it now, since `stop`. Does nothing if it was taken over, or is unknown."""
        ...

    async def mark(self, run_id: str, stop: DriveStop) -> None:
        """Says how a run stands that nobody drives. Does nothing if somebody does, or if it is unknown."""
        ...

    async def choose(self, run_id: str, options: RunOptions) -> None:
        """From now on the run is driven with these. Raises `StoreError` for an unknown run."""
        ...

    async def holder(self, run_id: str) -> RunHolder | None:
        """Who claimed the run last; None where it was never claimed, was given back, or is unknown."""
        ...

    async def commit(self, commit: StepCommit, fence: int) -> Control:
        """Writes state, artifact, events and what is learned in one transaction, and returns what people ask for.

        What is learned is `remembered` and what became of the edits; an attempt leaves each of them once.
        Raises `Fenced`, having written nothing, if the run's fence is not `fence` or its version is not
        `commit.before.version`.
        """
        ...

    async def load(self, run_id: str) -> RunState:
        """The state after the last commit. Raises `StoreError` for an unknown run."""
        ...

    async def first(self, run_id: str) -> RunState:
        """The state with which the run was created."""
        ...

    async def steps(self, run_id: str) -> list[StepRow]:
        """Every committed step, in order."""
        ...

    async def events(self, run_id: str, after: int = -1) -> list[Event]:
        """The committed events with a `seq` above `after`, in order."""
        ...

    async def runs(
        self, *, folder: str | None = None, prefix: str = "", limit: int = 50, errands: bool = False
    ) -> list[RunRow]:
        """Runs, newest first; those of one folder, or whose id begins with `prefix`.

        Runs that another one began are among them with `errands`, or where `prefix` holds the point that ids of such
        runs have.
        """
        ...

    def past(self, since: datetime | None = None) -> AsyncIterator[PastRun]:
        """Every run that was created since then, the oldest first, those that another one began among them.

        Runs are read many at a time and no state is: ten thousand of them are neither that many queries nor in memory
        at once. Each is as it was when it was read.
        """
        ...

    async def control(self, run_id: str, control: Control) -> None:
        """Asks the run's driver to pause after the step at hand, or to cancel the run."""
        ...

    async def asked(self, run_id: str) -> Control:
        """What was asked last. Raises `StoreError` for an unknown run."""
        ...

    async def tell(self, run_id: str, word: PersonWord, text: str, *, version: int) -> None:
        """Keeps what a person tells the run, whoever drives it. Raises `StoreError` for an unknown run."""
        ...

    async def told(self, run_id: str) -> list[PersonMessage]:
        """All that people told the run, in order."""
        ...

    async def tally(self, model: str, *, tenant: str) -> dict[EditKind, FitCounts]:
        """How the edits of this model fitted in all runs of this tenant, by form; a form it never used is not there."""
        ...
