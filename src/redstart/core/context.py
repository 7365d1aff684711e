"""The code that a model is shown, as references into a snapshot."""

from __future__ import annotations

from redstart.core.noun import Noun


class Chunk(Noun):
    """Lines `start` to `end` (both counted from 1, inclusive) of a file of the snapshot."""

    path: str
    start: int
    end: int
    score: float
    source: str
    """What found it: `frame`, `test`, `search`, `name`."""


class Context(Noun):
    chunks: tuple[Chunk, ...] = ()
    left_out: int = 0
    """How many candidates did not fit."""
