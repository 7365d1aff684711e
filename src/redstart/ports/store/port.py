"""The ports to what is kept: runs, the journal, blobs and snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from redstart.core.change import EditKind, EditRung, Snapshot, Tally
from redstart.core.events import Event
from redstart.core.formats import RECORD
from redstart.core.learning import Remembered
from redstart.core.run import Ended, RunState, Step
from redstart.core.run_options import RunOptions
from redstart.core.standing import Control, Holder, RunRow, Stop
from redstart.ports.store.ordinals import ordinal_in_words


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

    @property
    def edits(self) -> tuple[EditRung, ...]:
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


class Word(StrEnum):
    """What a person can tell a run."""

    say = "say"
    """Something to go by, in words."""
    accept = "accept"
    reject = "reject"


class Told(NamedTuple):
    """What a person told a run."""

    word: Word
    text: str
    version: int
    """The run's version that an answer is to: a run may ask more than once."""
    time: datetime


class Past(NamedTuple):
    """A run and what it left, as much of it as is counted over many runs."""

    row: RunRow
    ends: Sequence[Event]
    """Its events of the phase `end`, in order."""
    reproduced: Sequence[str]
    """The artifacts of its `reproduce` as JSON, in order."""
    answers: Sequence[Record]
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

    async def claim(self, run_id: str) -> Claim:
        """Takes the run over: its fence grows by one, and whoever held a smaller one cannot write any more.

        Its lease begins, and how the drive before stopped is forgotten.
        Raises `StoreError` for an unknown run, and `NewerFormat`, having changed nothing, for one that a newer version
        of Redstart stored.
        """
        ...

    async def renew(self, run_id: str, fence: int) -> None:
        """Renews the lease. Does nothing if the run was taken over, or is unknown."""
        ...

    async def release(self, run_id: str, fence: int, stop: Stop | None = None) -> None:
        """Gives the run back: nobody drives it now, since `stop`. Does nothing if it was taken over, or is unknown."""
        ...

    async def mark(self, run_id: str, stop: Stop) -> None:
        """Says how a run stands that nobody drives. Does nothing if somebody does, or if it is unknown."""
        ...

    async def choose(self, run_id: str, options: RunOptions) -> None:
        """From now on the run is driven with these. Raises `StoreError` for an unknown run."""
        ...

    async def holder(self, run_id: str) -> Holder | None:
        """Who claimed the run last; None where it was never claimed, was given back, or is unknown."""
        ...

    async def commit(self, commit: Commit, fence: int) -> Control:
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

    def past(self, since: datetime | None = None) -> AsyncIterator[Past]:
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

    async def tell(self, run_id: str, word: Word, text: str, *, version: int) -> None:
        """Keeps what a person tells the run, whoever drives it. Raises `StoreError` for an unknown run."""
        ...

    async def told(self, run_id: str) -> list[Told]:
        """All that people told the run, in order."""
        ...

    async def tally(self, model: str, *, tenant: str) -> dict[EditKind, Tally]:
        """How the edits of this model fitted in all runs of this tenant, by form; a form it never used is not there."""
        ...


class Reply(NamedTuple):
    """A person's answer to what the run asked."""

    accepts: bool
    text: str = ""


class Person(Protocol):
    """The person whose run it is, as a step hears them. Journaled: what was heard once is heard again on re-entry."""

    async def said(self) -> tuple[str, ...]:
        """The last few things that they said, oldest first."""
        ...

    async def answer(self) -> Reply | None:
        """Their answer to what the run waits for; None where there is none yet."""
        ...


class Forms(Protocol):
    """How well the edits of the model that is asked for them have fitted. Journaled, like `Person`."""

    async def tally(self) -> Mapping[EditKind, Tally]:
        """By form, over all runs of this tenant; a form that was never used is not there."""
        ...


class Errands(Protocol):
    """The runs that the run at hand waits for. Journaled, like `Person`."""

    async def ended(self) -> tuple[Ended, ...]:
        """How each of them ended, in the order in which they were begun. Raises `StoreError` while one has not."""
        ...


class Call(NamedTuple):
    """Where a journaled call stands in a run. The ordinal is allotted in program order inside the step.

    What reaches the step from outside its run has an ordinal of `ordinals.py`, below 0 and before every call of its
    own: recordings name those by their numbers, and none of these is to move them.
    """

    run_id: str
    attempt: int
    step: str
    ordinal: int

    def __str__(self) -> str:
        return f"attempt {self.attempt}, {self.step}, {ordinal_in_words(self.ordinal)}"


MadeKind = Literal["model", "sandbox", "recall", "lesson", "errands", "install"]
"""Calls that a step makes."""
HeardKind = Literal["said", "answer", "recall", "lessons", "failures", "patterns", "tally"]
"""What reached a step from outside its run."""
CallKind = MadeKind | HeardKind


class Record(NamedTuple):
    """A call that was made. `result` is JSON; what is large in it is a blob's name."""

    call: Call
    kind: str
    """A `CallKind`; in a journal of another version perhaps one that is not known here."""
    request_hash: str
    request: str
    """Blob: the request as JSON; empty where it says nothing more than the kind."""
    result: str
    digest: str
    """Over everything else; see `digest`."""
    format: str = ""
    """See `core/formats.py`. Empty, like the next, in records of versions that did not say."""
    recorded_by: str = ""
    """The version of Redstart."""

    def current_result(self) -> str:
        """The result as this version records it. Raises `NewerFormat`."""
        data = {"run_id": self.call.run_id, "kind": self.kind, "result": self.result}
        return RECORD.upgrade(data, self.format or 0)["result"]


def digest(record: Record) -> str:
    """Over everything else in the record: what tells a record that was changed afterwards."""
    parts = [*map(str, record.call), record.kind, record.request_hash, record.request, record.result]
    parts += [record.format, record.recorded_by] if record.format else []
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


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


class KeptBlob(NamedTuple):
    """A blob as it lies there."""

    name: str
    size: int
    put: float
    """When it was last put, in seconds since the epoch."""


class Blobs(Protocol):
    """Bytes by their SHA-256. What was put is never changed."""

    def put(self, data: bytes) -> str:
        """Durable when it returns; putting the same bytes again is free. The name is the hexadecimal SHA-256."""
        ...

    def get(self, name: str) -> bytes:
        """Raises `BlobMissing` if it is not there, and `StoreError` if its bytes are not what the name says."""
        ...


class SweptBlobs(Blobs, Protocol):
    """Blobs of which those that nobody needs can be removed while others put more."""

    def kept(self) -> Iterator[KeptBlob]:
        """Every blob, and what an interrupted write left."""
        ...

    def texts(self, names: Iterable[str]) -> Iterator[str]:
        """What those of them hold that begin as JSON does; of one that is not there nothing."""
        ...

    def drop(self, names: Iterable[str], before: float) -> None:
        """Removes those of them that were last put before that moment; one that is put meanwhile stays."""
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

    def size(self, snapshot: Snapshot, path: str) -> int | None:
        """A regular file's size, told without reading it; None where there is none at that path."""
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

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Snapshot | tuple[str, ...]:
        """Both changes of `base` in one tree; where they are at odds, the paths that they are at odds about."""
        ...
