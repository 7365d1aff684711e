"""The one stream that every display, log and metric reads."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import JsonValue

from redstart.core.formats import EVENT, Format, StoredNoun


class Phase(StrEnum):
    start = "start"
    note = "note"
    end = "end"


class Event(StoredNoun):
    """`name` is one of the eleven words, or `run` for the run as a whole."""

    stored_as: ClassVar[Format] = EVENT
    v: int = int(EVENT.version)
    run: str
    seq: int
    """Counts from 0 without a gap; a step that is entered again after a crash gives the same numbers again."""
    time: float
    attempt: int
    name: str
    phase: Phase
    data: dict[str, JsonValue] = {}
