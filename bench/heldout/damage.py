"""All held-out kinds of damage."""

from __future__ import annotations

from heldout.damage_blocks import BLOCK_KINDS
from heldout.damage_files import FILE_KINDS
from heldout.damage_patches import PATCH_KINDS
from kinds import Kind

KINDS: tuple[Kind, ...] = (*BLOCK_KINDS, *FILE_KINDS, *PATCH_KINDS)
