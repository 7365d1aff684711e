"""What every display, log and metric reads: the stream of events, and what a step is doing at the moment."""

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
    """`name` is one of the eleven words, or `run` for the run as a whole."""

    stored_as: ClassVar[StorageFormat] = EVENT
    v: int = int(EVENT.version)
    run: str
    seq: int
    """Counts from 0 without a gap; a step that is entered again after a crash gives the same numbers again."""
    time: float
    attempt: int
    name: str
    phase: Phase
    data: dict[str, JsonValue] = {}


class Progress(NamedTuple):
    """What is under way in a step. An empty `activity` says that it is over."""

    run: str
    attempt: int
    step: str
    activity: str = ""
    """In a few words: `baseline`, `rerun 2 of 4`, `asking openai:gpt-x`."""
    done: int = 0
    """Tests that have ended."""
    total: int = 0
    """Tests that will run; 0 where nobody knows."""
    seconds: float = 0.0
    """How long it is expected to take; 0 where nobody knows."""
    tokens: int = 0
    """Of the open question, about."""
