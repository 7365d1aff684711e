"""One answer of the corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Item(NamedTuple):
    """What was asked, what came, and what it says to whoever reads it; `expected` is None for what must be refused."""

    id: str
    kind: str
    question: str
    raw: str
    expected: object
    truncated: bool = False
    after: str = ""
    """The item that this one answers as a repair turn."""


class Made(NamedTuple):
    """What a kind makes of a true answer."""

    raw: str
    expected: object
    truncated: bool = False


Maker = Callable[[dict[str, object]], Made | None]
"""Damages a true answer; None where this answer has nothing to damage."""
