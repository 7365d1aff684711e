"""The one stream that every display, log and metric reads."""

from __future__ import annotations

from enum import StrEnum

from pydantic import JsonValue

from redstart.core.noun import Noun

EVENT_VERSION = 1


class Phase(StrEnum):
    start = "start"
    note = "note"
    end = "end"


class Event(Noun):
    """`name` is one of the eleven words, or `run` for the run as a whole."""

    v: int = EVENT_VERSION
    run: str
    seq: int
    """Counts from 0 without a gap; a step that is entered again after a crash gives the same numbers again."""
    time: float
    attempt: int
    name: str
    phase: Phase
    data: dict[str, JsonValue] = {}
