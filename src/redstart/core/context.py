"""The code that a model is shown, as references into a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.frozen import FrozenValue


class Chunk(FrozenValue):
    """Lines `start` to `end` (from 1, both inclusive) of a file of the snapshot."""

    path: str
    start: int
    end: int
    score: float
    source: str
    """How the chunk was found: `frame`, `test`, `search`, `name`, `run`, `survey`."""


class Context(FrozenValue):
    chunks: tuple[Chunk, ...] = ()
    left_out: int = 0
    """How many candidates did not fit."""

    def with_paths(self, paths: Mapping[str, str]) -> Context:
        """Return the context with its paths replaced by those in `paths`, which must contain each of them."""
        chunks = (chunk.model_copy(update={"path": paths[chunk.path]}) for chunk in self.chunks)
        return self.model_copy(update={"chunks": tuple(chunks)})
