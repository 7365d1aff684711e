"""The port to how well a model's edits have fitted so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from redstart.core.change import EditKind, FitCounts


class EditForms(Protocol):
    """How well the edits of the model that is asked for them have fitted. Journaled, like `Person`."""

    async def tally(self) -> Mapping[EditKind, FitCounts]:
        """By form, over all runs of this tenant; a form that was never used is not there."""
        ...
