"""The port to an engine."""

from __future__ import annotations

from typing import Protocol

from redstart.core.run import RunState
from redstart.flow.loop import Advance, StepAdvance

DEFAULT = "langgraph"
"""The name of the engine that drives where nobody named another."""


class Engine(Protocol):
    async def __call__(self, state: RunState, advance: Advance) -> StepAdvance:
        """Calls `advance` for the step that `route` names, again and again, until the run ends or is told to halt.

        It keeps nothing of its own: what `advance` returned last is what it returns. What `advance` raises it lets
        through.
        """
        ...
