"""What a step is given."""

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
        """Adds an event of the step at hand to the stream."""
        ...


class Announcer(Protocol):
    def __call__(self, activity: str, *, tests: int = 0, seconds: float = 0.0) -> None:
        """Says what the next execution is for, how many tests it has and how long it may take, as far as is known.

        It is shown while the execution lasts; nothing is kept of it, and nothing depends on it.
        """
        ...


def announce_nothing(activity: str, *, tests: int = 0, seconds: float = 0.0) -> None:
    """For a step that nobody looks at."""
    del activity, tests, seconds


@dataclass(frozen=True, slots=True)
class Ports:
    """What a step may use.

    All but `blobs`, `trees`, `note` and `announce` are journaled: what they gave once they give again on re-entry.
    """

    model: Model
    sandbox: Sandbox
    memory: AttemptMemory
    lessons: Lessons
    person: Person
    forms: EditForms
    errands: ChildRuns
    installer: Installs
    blobs: Blobs
    trees: Trees
    note: ProgressNote
    announce: Announcer = announce_nothing
