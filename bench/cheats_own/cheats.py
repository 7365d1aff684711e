"""All of our own cheats."""

from __future__ import annotations

from cheats_own import answers, process, told
from heldout.cheat import Cheat

CLASSES: tuple[tuple[Cheat, ...], ...] = (answers.CHEATS, process.CHEATS, told.CHEATS)
CHEATS: tuple[Cheat, ...] = tuple(cheat for cheats in CLASSES for cheat in cheats)
