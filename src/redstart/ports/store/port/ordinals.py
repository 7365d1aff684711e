"""The places in the journal of what reaches a step from outside its run, besides the calls that it makes itself."""

from __future__ import annotations

from enum import IntEnum


class OutsideOrdinal(IntEnum):
    """The numbers stand in stores and recordings."""

    heard = -1
    """What a person told the run."""
    counted = -2
    """How edits fitted in other runs."""
    taught = -3
    """What other runs taught."""
    alike = -4
    """How like goals were reached before."""
    again = -5
    """Which fixes are known of the last attempt's failure."""
    failed = -6
    """What failed in other runs."""


_WORDS: dict[int, str] = {
    OutsideOrdinal.heard: "what was heard",
    OutsideOrdinal.counted: "what was counted",
    OutsideOrdinal.taught: "what was taught",
    OutsideOrdinal.alike: "what was alike",
    OutsideOrdinal.again: "what was recalled for the last failure",
    OutsideOrdinal.failed: "what had failed before",
}


def ordinal_in_words(ordinal: int) -> str:
    return _WORDS.get(ordinal, f"call {ordinal}")
