"""All held-out cheats."""

from __future__ import annotations

from heldout.cheat import Cheat
from heldout.cheats_source import SOURCE_CHEATS
from heldout.cheats_unittest import UNITTEST_CHEATS
from heldout.cheats_values import VALUE_CHEATS

CHEATS: tuple[Cheat, ...] = (*SOURCE_CHEATS, *VALUE_CHEATS, *UNITTEST_CHEATS)
