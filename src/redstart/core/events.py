"""The input of every display, log and metric: the stream of events, and the current activity of a step."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, NamedTuple

from pydantic import JsonValue

from redstart.core.formats import EVENT, StorageFormat, StoredValue


class Phase(StrEnum):
    start = "start"
    note = "note"
    end = "end"


class Event(StoredValue):
    """An event of a run. `name` is one of the eleven steps, or `run` for the run as a whole."""

    stored_as: ClassVar[StorageFormat] = EVENT
    v: int = int(EVENT.version)
    run: str
    seq: int
    """Counts from 0 without gaps. A step that runs again after a crash gives the same numbers again."""
    time: float
    attempt: int
    name: str
    phase: Phase
    data: dict[str, JsonValue] = {}


class Progress(NamedTuple):
    """The current activity of a step. An empty `activity` means that it is over."""

    run: str
    attempt: int
    step: str
    activity: str = ""
    """In a few words: `baseline`, `rerun 2 of 4`, `asking openai:gpt-x`."""
    done: int = 0
    """Tests that have ended."""
    total: int = 0
    """Tests that will run; 0 if unknown."""
    seconds: float = 0.0
    """Expected duration; 0 if unknown."""
    tokens: int = 0
    """Approximate tokens of the open question."""
