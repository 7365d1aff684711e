"""The ports to what is kept: runs, the journal, blobs and snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from redstart.core.change import Snapshot
from redstart.core.events import Event
from redstart.core.learning import Remembered
from redstart.core.run import RunState, Step


class Control(StrEnum):
    """What a person asks of a run that somebody else drives; obeyed between two steps."""

    none = ""
    pause = "pause"
    cancel = "cancel"


class Claim(NamedTuple):
    state: RunState
    fence: int


class Commit(NamedTuple):
    """One step, done."""

    before: RunState
    after: RunState
    step: Step
    artifact: str
    """The step's artifact as JSON."""
    events: Sequence[Event]
    remembered: Remembered | None


class StepRow(NamedTuple):
    """A committed step: `state` is the whole state after it."""

    version: int
    attempt: int
    step: Step
    artifact: str
    state: RunState


class RunRow(NamedTuple):
    run_id: str
    mode: str
    status: str
    result: str
    goal: str
    repo: str
    folder: str
    created: datetime
    updated: datetime


class Store(Protocol):
    """The truth about runs. Every write but `create` and `control` is fenced."""

    async def create(self, state: RunState, *, folder: str, created: datetime) -> None:
        """Keeps a new run at version 0. `folder` is where it was started, for finding it again on this machine.

        Raises `StoreError` if the id is taken.
        """
        ...

    async def claim(self, run_id: str) -> Claim:
        """Takes the run over: its fence grows by one, and whoever held a smaller one cannot write any more.

        Raises `StoreError` for an unknown run.
        """
        ...

    async def commit(self, commit: Commit, fence: int) -> Control:
        """Writes state, artifact, events and what is remembered in one transaction, and returns what people ask for.

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

    async def runs(self, *, folder: str | None = None, prefix: str = "", limit: int = 50) -> list[RunRow]:
        """Runs, newest first; those of one folder, or whose id begins with `prefix`."""
        ...

    async def control(self, run_id: str, control: Control) -> None:
        """Asks the run's driver to pause or cancel after the step at hand."""
        ...


class Call(NamedTuple):
    """Where a journaled call stands in a run. The ordinal is allotted in program order inside the step."""

    run_id: str
    attempt: int
    step: str
    ordinal: int

    def __str__(self) -> str:
        return f"attempt {self.attempt}, {self.step}, call {self.ordinal}"


class Record(NamedTuple):
    """A call that was made. `result` is JSON; what is large in it is a blob's name."""

    call: Call
    kind: str
    """`model`, `sandbox`, `recall` or `clock`."""
    request_hash: str
    request: str
    """Blob: the request as JSON; empty where it says nothing more than the kind."""
    result: str
    digest: str
    """Over all of the above; see `redstart.engines.journal`."""


class Journal(Protocol):
    """Every call that left a step, recorded before its result is used."""

    async def find(self, call: Call) -> Record | None: ...

    async def add(self, record: Record, fence: int) -> None:
        """Raises `Fenced` if the run's fence is not `fence`, and `StoreError` if the call is recorded already."""
        ...

    async def discard(self, call: Call, fence: int) -> int:
        """Forgets this call and those after it in the same step; returns how many. Raises `Fenced`."""
        ...

    async def records(self, run_id: str) -> list[Record]:
        """All of a run, by attempt, then in the order in which they were written."""
        ...


class Blobs(Protocol):
    """Bytes by their SHA-256. What was put is never changed."""

    def put(self, data: bytes) -> str:
        """Durable when it returns; putting the same bytes again is free. The name is the hexadecimal SHA-256."""
        ...

    def get(self, name: str) -> bytes:
        """Raises `StoreError` if it is not there, or if its bytes are not what the name says."""
        ...


class TreeChange(NamedTuple):
    """What differs between two trees at one path. Modes are git's, `000000` where there is no file."""

    path: str
    old_mode: str
    new_mode: str


class DiffRefused(NamedTuple):
    """Why git would not apply a diff."""

    message: str


class Trees(Protocol):
    """The files of snapshots. Reads and writes no folder of the user's and runs no code of the repo's."""

    def checkout(self, snapshot: Snapshot) -> AbstractContextManager[Path]:
        """A folder with exactly the files of the snapshot, the caller's own, removed at the end."""
        ...

    def files(self, snapshot: Snapshot) -> list[str]:
        """Every path, sorted."""
        ...

    def read(self, snapshot: Snapshot, path: str) -> bytes | None:
        """A regular file's bytes; None where there is none at that path."""
        ...

    def write(self, snapshot: Snapshot, files: Mapping[str, bytes | None]) -> Snapshot:
        """The snapshot with these files instead (None takes one away); modes of existing files are kept.

        Raises `PolicyViolation` for a path that no tree may hold (`.git`, `..`, absolute).
        """
        ...

    def apply(self, snapshot: Snapshot, diff: bytes) -> Snapshot | DiffRefused:
        """The snapshot with a unified diff applied, all of it or nothing."""
        ...

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        """A unified diff from one to the other, as a person reads it."""
        ...

    def changes(self, old: Snapshot, new: Snapshot) -> list[TreeChange]:
        """Every path that differs."""
        ...
