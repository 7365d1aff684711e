"""All held-out hostile patches, and the workspace that they are played against."""

from __future__ import annotations

from heldout.hostile_base import BASE, EXECUTABLE, LINKS, OUTSIDE, PARENT, Hostile, build
from heldout.hostile_places import PLACES
from heldout.hostile_shapes import SHAPES

__all__ = ["BASE", "EXECUTABLE", "HOSTILE", "LINKS", "OUTSIDE", "PARENT", "Hostile", "build"]

HOSTILE: tuple[Hostile, ...] = (*PLACES, *SHAPES)
