"""The port to statistics on how well a model's edits fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from redstart.core.change import EditKind, FitCounts


class EditForms(Protocol):
    """How well the edits of the current model have fitted. Journaled, like `Person`."""

    async def count_fits(self) -> Mapping[EditKind, FitCounts]:
        """Count fits by edit form, over all runs of this tenant. Unused forms are left out."""
        ...
