"""The port to time and identity, so that a run can be repeated to the letter."""

from __future__ import annotations

from typing import Protocol


class World(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an unknown start; never goes back."""
        ...

    def fresh_id(self) -> str:
        """An id that no other call gives."""
        ...
