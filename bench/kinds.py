"""What a kind of damage is: one real fix in, one answer as a model might give it out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, NamedTuple

Expect = Literal["reach", "refuse", "either"]
"""What a good applier does: reach the true content, leave the file alone, or one of the two and never a third thing."""


class Fix(NamedTuple):
    """One real fix of one file."""

    path: str
    old: str
    new: str
    diff: str


class Made(NamedTuple):
    """A damaged answer, and the truth about it."""

    answer: str
    """What the model says."""
    old: str
    """The file's content before."""
    expect: Expect | None
    """Where this one answer asks for something else than its kind does; None for what the kind says."""
    wanted: str
    """The true content after; with the line ends of `old`."""


class Kind(NamedTuple):
    """A kind of damage. `make` gives None for a fix that cannot be damaged in this way."""

    name: str
    expect: Expect
    make: Callable[[Fix, random.Random], Made | None]
