"""The port to the journal, which records every external call of a step before its result is used."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, Protocol

from redstart.core.formats import RECORD
from redstart.ports.store.port.ordinals import describe_ordinal


class CallPlace(NamedTuple):
    """The position of a journaled call in a run. Ordinals are assigned in program order inside the step.

    Input from outside the run has a negative ordinal from `ordinals.py`, before every call of the step: recordings
    refer to the step's calls by number, so such input must not shift these numbers.
    """

    run_id: str
    attempt: int
    step: str
    ordinal: int

    def __str__(self) -> str:
        return f"attempt {self.attempt}, {self.step}, {describe_ordinal(self.ordinal)}"


MadeKind = Literal["model", "sandbox", "recall", "lesson", "errands", "install"]
"""The kinds of calls that a step makes."""


HeardKind = Literal["said", "answer", "recall", "lessons", "failures", "patterns", "tally"]
"""The kinds of input that a step gets from outside its run."""


CallKind = MadeKind | HeardKind | Literal["handover"]


class JournalRecord(NamedTuple):
    """A recorded call. `result` is JSON; large values in it are replaced by blob names."""

    call: CallPlace
    kind: str
    """A `CallKind`. A journal of another version may contain an unknown one."""
    request_hash: str
    request: str
    """The blob with the request as JSON; empty if the request contains nothing but the kind."""
    result: str
    digest: str
    """A digest of all other fields; see `digest`."""
    format: str = ""
    """See `core/formats.py`. Empty, like `recorded_by`, in records of older versions."""
    recorded_by: str = ""
    """The version of Redstart."""

    def upgrade_result(self) -> str:
        """Return the result as this version records it. Raises `NewerFormat`."""
        data = {"run_id": self.call.run_id, "kind": self.kind, "result": self.result}
        return RECORD.upgrade(data, self.format or 0)["result"]


def compute_digest(record: JournalRecord) -> str:
    """Calculate the digest of all other fields of the record. It reveals later changes."""
    parts = [*map(str, record.call), record.kind, record.request_hash, record.request, record.result]
    parts += [record.format, record.recorded_by] if record.format else []
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


class Journal(Protocol):
    """The journal. It records every external call of a step before the call's result is used."""

    async def list_step(self, call: CallPlace) -> list[JournalRecord]:
        """List the records of the step that makes this call, by ordinal."""
        ...

    async def add(self, record: JournalRecord, fence: int) -> None:
        """Add a record. Raises `Fenced` if the run's fence is not `fence`, `StoreError` if the call has a record."""
        ...

    async def discard(self, call: CallPlace, fence: int) -> int:
        """Remove this call and all later ones of the same step. Returns how many. Raises `Fenced`."""
        ...

    async def list_records(self, run_id: str) -> list[JournalRecord]:
        """List all records of a run, by attempt, then in the order in which they were written."""
        ...
