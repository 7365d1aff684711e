"""What a run thinks, plans and keeps."""

from __future__ import annotations

import hashlib

from redstart.core.noun import Noun

SIGNATURE_VERSION = 2
"""Part of every key. Where it grows, what was kept under older keys keeps them: no new failure has such a key, so older
cards are no longer found by signature or by family, only by what they say. They are not named anew, because the text
that they were named from is not kept."""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join((str(SIGNATURE_VERSION), *parts)).encode()).hexdigest()[:32]


class Signature(Noun):
    """A failure with what differs between machines and runs taken out."""

    exception: str
    message: str
    """What it said, normalised."""
    frame: str
    """`path:qualname` of the innermost frame in the repo's source, else the test's own."""
    kind: str = ""
    """What it said without the repo's own names and without values; empty where `message` has none."""
    at: str = ""
    """Where there is no frame in the source: the line that the test was at."""

    @property
    def key(self) -> str:
        """This bug."""
        return _digest(self._type, self.message, self.frame, self.at)

    @property
    def family(self) -> str:
        """This kind of bug, in any repo."""
        return _digest(self._type, self.kind or self.message)

    @property
    def _type(self) -> str:
        """Without its module: Python moves its exceptions from one to another."""
        return self.exception.rpartition(".")[2]


class Reflection(Noun):
    root_cause: str = ""
    what_failed: str = ""
    try_next: str = ""


class FixCard(Noun):
    """What a verified run leaves for the next one that meets the same failure."""

    id: str
    summary: str
    root_cause: str
    fix: str
    verification: str
    error_signature: str
    family: str
    files_changed: tuple[str, ...]
    debug_steps: tuple[str, ...]
    outcome: str
    provenance: dict[str, str]


class FailureRecord(Noun):
    """What an attempt that stayed red leaves: what was tried, and how it failed."""

    id: str
    error_signature: str
    family: str
    test_id: str
    patch: str
    """The patch's fingerprint."""
    what_failed: str


class Recalled(Noun):
    """A card that memory offered, with the reason."""

    card: FixCard
    score: float
    source: str
    """`signature` (this bug) or `family` (this kind of bug)."""


class Subtask(Noun):
    title: str
    criteria: tuple[str, ...] = ()
    needs: tuple[int, ...] = ()
    """The subtasks that must be done before, by their place in the plan, from 1."""


class Plan(Noun):
    """What to do. A lean fix needs no more than what memory recalled."""

    summary: str = ""
    subtasks: tuple[Subtask, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    reviews: tuple[str, ...] = ()
    """Of an audit: what is looked at, `sql`, `code` or both; empty for both."""
    files: tuple[str, ...] = ()
    """Of an audit: the files and folders that the goal is about; empty for all."""
    fault: str = ""


class Remembered(Noun):
    """What `remember` gives; the commit of the step writes it, keyed by run and attempt."""

    card: FixCard | None = None
    failure: FailureRecord | None = None
