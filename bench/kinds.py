"""The types of the kinds of damage: each takes one real fix and returns one answer as a model might give it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, NamedTuple

Expect = Literal["reach", "refuse", "either"]
"""What a good applier does: reach the true content, leave the file alone, or either of the two and nothing else."""


class Fix(NamedTuple):
    """One real fix of one file."""

    path: str
    old: str
    new: str
    diff: str


class Made(NamedTuple):
    """A damaged answer, and the truth about it."""

    answer: str
    """The model's answer."""
    old: str
    """The file's content before."""
    expect: Expect | None
    """The expectation for this answer if it differs from that of its kind; None otherwise."""
    wanted: str
    """The true content afterwards, with the line endings of `old`."""


class Kind(NamedTuple):
    """A kind of damage. `make` returns None for a fix that cannot be damaged in this way."""

    name: str
    expect: Expect
    make: Callable[[Fix, random.Random], Made | None]
