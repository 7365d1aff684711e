"""Every state of a folder, by name: the states of the two modules beside this one."""

from __future__ import annotations

import handover_left
import handover_taken
from handover_repo import CRLF, FILES, NEW, OLD, STATES, TEXT, Repo, exclude_patched

__all__ = [
    "CRLF",
    "FILES",
    "NEW",
    "OLD",
    "STATES",
    "TEXT",
    "Repo",
    "exclude_patched",
    "handover_left",
    "handover_taken",
]
