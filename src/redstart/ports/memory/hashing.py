"""The built-in embedder: hashed words and parts of words. It needs no model, no network and no package."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from zlib import crc32

from redstart.ports.memory.port import Meter

DIMENSION = 256
"""The vector size. 1 KB fits inside a database row; a longer vector would be stored and fetched separately."""
PART = 3
"""The number of characters of a word part."""
PART_WEIGHT = 0.4
"""The weight of a part relative to a whole word: a slightly different spelling is still similar."""
STOP_WORDS = frozenset(("error", "exception", "py"))
"""Words that nearly every failure contains and that carry no information."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_SPREAD = 2_654_435_761
"""Knuth's multiplier: similar texts have similar CRCs, which must be spread apart."""


class HashingEmbedder:
    """The same text has the same vector on every machine. All lines of a text have equal weight, long or short."""

    name = "hashing-1"
    remote = False
    dimension = DIMENSION
    near = 0.5
    near_elsewhere = 0.75
    """With it, 0.7 % of pairs of different failures of two packages count as similar (`bench/memory.py`); with `near`
    alone, 8 %."""
    near_goals = 0.4
    """In a test set of 276 pairs of goals, 7 of 12 similar pairs are above it, and none of the others."""

    def __init__(self, near: float | None = None) -> None:
        if near is not None:
            self.near = near
            self.near_elsewhere = max(near, self.near_elsewhere)

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [embed_text(text) for text in texts]

    def with_meter(self, meter: Meter) -> HashingEmbedder:
        """Return the same embedder: it costs nothing."""
        del meter
        return self


def embed_text(text: str) -> list[float]:
    total = [0.0] * DIMENSION
    for line in text.splitlines():
        features = _extract_features(line)
        length = math.sqrt(sum(weight * weight for weight in features.values()))
        for place, weight in features.items():
            total[place] += weight / length if length else 0.0
    length = math.sqrt(sum(weight * weight for weight in total))
    return [weight / length for weight in total] if length else total


def _extract_features(line: str) -> dict[int, float]:
    """Return the weights of the line's words and their parts, by index. Repeated words count once."""
    weights: dict[int, float] = defaultdict(float)
    words = dict.fromkeys(word.lower() for word in _WORD.findall(line) if word.lower() not in STOP_WORDS)
    for feature, weight in dict(item for word in words for item in _split_word(word)).items():
        spread = crc32(feature.encode()) * _SPREAD & 0xFFFF_FFFF
        sign = 1.0 if spread & 0x80_0000 else -1.0
        weights[spread >> 24] += sign * weight
    return weights


def _split_word(word: str) -> Iterator[tuple[str, float]]:
    yield word, 1.0
    delimited = f"<{word}>"
    if len(word) > PART:
        for start in range(len(delimited) - PART + 1):
            yield delimited[start : start + PART], PART_WEIGHT
