"""What a step is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from redstart.ports.memory.port import Memory
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.store.port import Blobs, Trees


class Note(Protocol):
    def __call__(self, **data: JsonValue) -> None:
        """Adds an event of the step at hand to the stream."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """`model`, `sandbox` and `memory` are journaled: what they gave once they give again when a step is re-entered."""

    model: Model
    sandbox: Sandbox
    memory: Memory
    blobs: Blobs
    trees: Trees
    note: Note
