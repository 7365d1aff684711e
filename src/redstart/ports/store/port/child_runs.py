"""The port to the child runs that a run waits for."""

from __future__ import annotations

from typing import Protocol

from redstart.core.run import ChildResult


class ChildRuns(Protocol):
    """The child runs that the current run waits for. Journaled, like `Person`."""

    async def load_results(self) -> tuple[ChildResult, ...]:
        """Return how each child run ended, in the order of their start. Raises `StoreError` if one has not ended."""
        ...
