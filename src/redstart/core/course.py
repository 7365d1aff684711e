"""The course of a run: whether it goes in circles, and what is done otherwise because of it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.change import EditKind
from redstart.core.noun import FrozenValue


class CoursePattern(StrEnum):
    """What attempts show that a run which gets somewhere does not."""

    unfit = "unfit"
    """Several answers held no edit that could be made."""
    revisited = "revisited"
    """The same patch again, or another one that made the same code, with the same failure."""
    oscillation = "oscillation"
    """To and fro between two failures, or two patches."""
    regress = "regress"
    """More is red than before it."""
    same_signature = "same_signature"
    """Other code, the same failure of the same tests."""
    same_test = "same_test"
    """The same test is red each time, in whatever way."""
    no_progress = "no_progress"
    """Several attempts, none of them with less red than there was."""
    exhausted = "exhausted"
    """A model has written as many attempts in vain as it may."""


class Strategy(StrEnum):
    """What the next attempt does otherwise."""

    form = "form"
    """Edits are asked for in another form."""
    plan = "plan"
    """A plan is asked for, of the strong model."""
    both = "both"
    """One change is asked for that is right where each of two was wrong."""
    restart = "restart"
    """It goes on from the code before what made it worse, with the tests named that broke."""
    wider = "wider"
    """More of the code is shown, from here on."""
    stronger = "stronger"
    """The strong model writes, from here on."""
    hypothesis = "hypothesis"
    """Another cause than those that were tried is asked for, with more freedom."""


class Trend(StrEnum):
    """Where the number of red tests goes."""

    improving = "improving"
    regressing = "regressing"
    stable = "stable"
    mixed = "mixed"


class CourseChange(FrozenValue):
    """Why and how the next attempt differs."""

    pattern: CoursePattern
    strategy: Strategy
    attempts: tuple[int, ...] = Field(default=(), max_length=8)
    """The attempts that show the pattern, the newest last."""


class AttemptOutcome(FrozenValue):
    """What an attempt came to, as far as attempts are compared; empty where there is nothing to compare."""

    base: str = ""
    """Tree of what it is measured against: what was measured against another is not compared with it."""
    tree: str = ""
    """What it made, where that was tested."""
    failing: str = ""
    """Digest of the ids of the tests that speak against it."""
    signature: str = ""
    """Of the first of them that is told of; empty where that is not known."""
    tests: tuple[str, ...] = Field(default=(), max_length=8)
    """Short digests of the first of them."""
    wrong: int | None = None
    """How many tests are still red, newly red or missing; None where that is not known, or there are none."""
    unfit: bool = False
    """Whether the answer held no edit that could be made."""
    form: EditKind | None = None
    """In which form edits were asked for."""
    model: str = ""


class StallLimits(FrozenValue):
    """How many attempts in a row may bring nothing; None for no end."""

    warning: int | None = Field(default=None, ge=1)
    end: int | None = Field(default=None, ge=1)
