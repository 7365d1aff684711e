"""The journal ordinals of input that a step gets from outside its run, as opposed to the calls that it makes."""

from __future__ import annotations

from enum import IntEnum


class OutsideOrdinal(IntEnum):
    """Ordinals of outside input. Do not change the numbers: stores and recordings contain them."""

    heard = -1
    """Messages from a person to the run."""
    counted = -2
    """Edit statistics of other runs."""
    taught = -3
    """Lessons of other runs."""
    alike = -4
    """Patterns: how similar goals were reached before."""
    again = -5
    """Known fixes for the failure of the last attempt."""
    failed = -6
    """Failed attempts of other runs."""


_ORDINAL_NAMES: dict[int, str] = {
    OutsideOrdinal.heard: "what was heard",
    OutsideOrdinal.counted: "what was counted",
    OutsideOrdinal.taught: "what was taught",
    OutsideOrdinal.alike: "what was alike",
    OutsideOrdinal.again: "what was recalled for the last failure",
    OutsideOrdinal.failed: "what had failed before",
}


def describe_ordinal(ordinal: int) -> str:
    return _ORDINAL_NAMES.get(ordinal, f"call {ordinal}")
