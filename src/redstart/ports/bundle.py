"""What a step is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from redstart.ports.install.port import Installs
from redstart.ports.memory.port import Lessons, Memory
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.store.port import Blobs, Errands, Forms, Person, Trees


class Note(Protocol):
    def __call__(self, **data: JsonValue) -> None:
        """Adds an event of the step at hand to the stream."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """All but `blobs`, `trees` and `note` are journaled: what they gave once they give again on re-entry."""

    model: Model
    sandbox: Sandbox
    memory: Memory
    lessons: Lessons
    person: Person
    forms: Forms
    errands: Errands
    installer: Installs
    blobs: Blobs
    trees: Trees
    note: Note
