"""The ports that a step can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from redstart.ports.install.port import Installs
from redstart.ports.memory.port import AttemptMemory, Lessons
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.child_runs import ChildRuns
from redstart.ports.store.port.edit_forms import EditForms
from redstart.ports.store.port.person import Person
from redstart.ports.store.port.trees import Trees


class ProgressNote(Protocol):
    def __call__(self, **data: JsonValue) -> None:
        """Add an event of the current step to the stream."""
        ...


class Announcer(Protocol):
    def __call__(self, activity: str, *, tests: int = 0, seconds: float = 0.0) -> None:
        """Announce the next execution with its purpose and, if known, its number of tests and expected duration.

        The text is displayed while the execution lasts. It is not stored, and nothing depends on it.
        """
        ...


def announce_nothing(activity: str, *, tests: int = 0, seconds: float = 0.0) -> None:
    """Ignore the announcement. For a step whose progress nobody watches."""
    del activity, tests, seconds


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that a step may use.

    All except `blobs`, `trees`, `note` and `announce` are journaled: on re-entry they return the recorded results.
    """

    model: Model
    sandbox: Sandbox
    memory: AttemptMemory
    lessons: Lessons
    person: Person
    forms: EditForms
    child_runs: ChildRuns
    installer: Installs
    blobs: Blobs
    trees: Trees
    note: ProgressNote
    announce: Announcer = announce_nothing
