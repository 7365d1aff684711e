"""The port to the runs that a run waits for."""

from __future__ import annotations

from typing import Protocol

from redstart.core.run import ChildResult


class ChildRuns(Protocol):
    """The runs that the run at hand waits for. Journaled, like `Person`."""

    async def ended(self) -> tuple[ChildResult, ...]:
        """How each of them ended, in the order in which they were begun. Raises `StoreError` while one has not."""
        ...
