"""The port to time and identity, so that a run can be repeated exactly."""

from __future__ import annotations

from typing import Protocol


class World(Protocol):
    def now(self) -> float:
        """Return seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an unknown start; never goes back."""
        ...

    def generate_id(self) -> str:
        """Return an ID that no other call returns."""
        ...
