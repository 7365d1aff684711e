"""The port to the journal: every call that left a step, recorded before its result is used."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, Protocol

from redstart.core.formats import RECORD
from redstart.ports.store.port.ordinals import ordinal_in_words


class CallPlace(NamedTuple):
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


class JournalRecord(NamedTuple):
    """A call that was made. `result` is JSON; what is large in it is a blob's name."""

    call: CallPlace
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


def digest(record: JournalRecord) -> str:
    """Over everything else in the record: what tells a record that was changed afterwards."""
    parts = [*map(str, record.call), record.kind, record.request_hash, record.request, record.result]
    parts += [record.format, record.recorded_by] if record.format else []
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


class Journal(Protocol):
    """Every call that left a step, recorded before its result is used."""

    async def find(self, call: CallPlace) -> JournalRecord | None: ...

    async def add(self, record: JournalRecord, fence: int) -> None:
        """Raises `Fenced` if the run's fence is not `fence`, and `StoreError` if the call is recorded already."""
        ...

    async def discard(self, call: CallPlace, fence: int) -> int:
        """Forgets this call and those after it in the same step; returns how many. Raises `Fenced`."""
        ...

    async def records(self, run_id: str) -> list[JournalRecord]:
        """All of a run, by attempt, then in the order in which they were written."""
        ...
