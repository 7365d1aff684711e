"""The port of an engine."""

from __future__ import annotations

from typing import Protocol

from redstart.core.run import RunState
from redstart.flow.loop import Advance, StepAdvance

DEFAULT = "langgraph"
"""The name of the default engine."""


class Engine(Protocol):
    async def __call__(self, state: RunState, advance: Advance) -> StepAdvance:
        """Call `advance` repeatedly with the step that `route` names, until the run ends or is told to halt.

        The engine stores nothing. It returns the last result of `advance`, and lets its exceptions through.
        """
        ...
