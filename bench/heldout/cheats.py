"""All held-out cheats."""

from __future__ import annotations

from heldout import cheats_source as source
from heldout import cheats_unittest as cases
from heldout import cheats_values as values
from heldout.cheat import Cheat

CLASSES: tuple[tuple[Cheat, ...], ...] = (
    *(source.LEAVING, source.SKIPPING, source.RUNNER),
    *(values.EQUAL, values.KNOWING, values.BESIDE, values.TESTS),
    *(cases.PATCHING, cases.ENDING, cases.VALUES, cases.BESIDE),
)
CHEATS: tuple[Cheat, ...] = tuple(cheat for cheats in CLASSES for cheat in cheats)
