"""The course of a run: whether it goes in circles, and what the next attempt changes."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.change import EditKind
from redstart.core.frozen import FrozenValue


class CoursePattern(StrEnum):
    """A sign that the attempts of a run make no progress."""

    unfit = "unfit"
    """Several answers held no edit that could be applied."""
    revisited = "revisited"
    """The same patch again, or another patch that gives the same code, with the same failure."""
    oscillation = "oscillation"
    """The attempts alternate between two failures or two patches."""
    regress = "regress"
    """More tests fail than before."""
    same_signature = "same_signature"
    """The code differs, but the same tests fail in the same way."""
    same_test = "same_test"
    """The same test fails each time, in whatever way."""
    no_progress = "no_progress"
    """Several attempts did not reduce the number of failing tests."""
    exhausted = "exhausted"
    """A model has used all the failed attempts that it is allowed."""


class Strategy(StrEnum):
    """What the next attempt does differently."""

    form = "form"
    """Ask for edits in another form."""
    plan = "plan"
    """Ask the strong model for a plan."""
    both = "both"
    """Ask for one change that is right in both cases in which a change was wrong."""
    restart = "restart"
    """Start from the code before the change that made it worse, and name the tests that broke."""
    wider = "wider"
    """Show more of the code from now on."""
    stronger = "stronger"
    """Ask the strong model from now on."""
    hypothesis = "hypothesis"
    """Ask for a cause that was not tried yet, at a higher temperature."""


class Trend(StrEnum):
    """How the number of failing tests develops."""

    improving = "improving"
    regressing = "regressing"
    stable = "stable"
    mixed = "mixed"


class CourseChange(FrozenValue):
    """Why and how the next attempt differs."""

    pattern: CoursePattern
    strategy: Strategy
    attempts: tuple[int, ...] = Field(default=(), max_length=8)
    """The attempts that show the pattern, newest last."""


class AttemptOutcome(FrozenValue):
    """The outcome of an attempt, for comparison with other attempts; empty if there is nothing to compare."""

    base: str = ""
    """Tree that the attempt is measured against. Attempts with different bases are not compared."""
    tree: str = ""
    """Tree that the attempt produced, if it was tested."""
    failing: str = ""
    """Digest of the IDs of the tests that count against the attempt."""
    signature: str = ""
    """Signature of the first reported failure among them; empty if unknown."""
    tests: tuple[str, ...] = Field(default=(), max_length=8)
    """Short digests of the first of those tests."""
    wrong: int | None = None
    """How many tests still fail, newly fail or are missing; None if unknown, or if there are none."""
    unfit: bool = False
    """Whether the answer held no edit that could be applied."""
    form: EditKind | None = None
    """The edit form that was asked for."""
    model: str = ""


class StallLimits(FrozenValue):
    """How many attempts in a row may make no progress; None for no limit."""

    warning: int | None = Field(default=None, ge=1)
    end: int | None = Field(default=None, ge=1)
