"""The journal ordinals of what a step records besides the calls that it makes."""

from __future__ import annotations

from enum import IntEnum

FIRST_HANDOVER = -1000
"""The ordinal of the hand-over before call 0. Each other hand-over has this ordinal less that of its call, so that a
call has at most one."""


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
    if is_handover(ordinal):
        return f"the hand-over before {describe_ordinal(get_handover_ordinal(ordinal))}"
    return _ORDINAL_NAMES.get(ordinal, f"call {ordinal}")


def get_handover_ordinal(ordinal: int) -> int:
    """Return the ordinal of the hand-over before this call; for a hand-over, that of its call."""
    return FIRST_HANDOVER - ordinal


def is_handover(ordinal: int) -> bool:
    return ordinal <= FIRST_HANDOVER - min(OutsideOrdinal)
