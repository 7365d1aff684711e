"""How a run is to be done: what sort of program, what it is measured by, how models are asked."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.change import EditKind, Snapshot
from redstart.core.course import StallLimits
from redstart.core.noun import FrozenValue


class ProgramKind(StrEnum):
    """What sort of program is made, where the user says so (create)."""

    web_app = "web_app"
    data_pipeline = "data_pipeline"
    cli_tool = "cli_tool"
    library = "library"


class MetricDirection(StrEnum):
    smaller = "smaller"
    larger = "larger"


class Metric(FrozenValue):
    """What a program is measured by, besides its tests."""

    command: tuple[str, ...]
    """Run in the sandbox; the last number that it prints counts."""
    better: MetricDirection = MetricDirection.smaller
    start: Snapshot
    """The program before any improvement: none may leave it worse than that."""


class QuestionOptions(FrozenValue):
    """How models are asked, as their profiles said when the run began: what a run asks does not change on its way."""

    window: int = Field(default=0, ge=0)
    """Tokens that a question and its answer may have together; 0 where that is not known."""
    edits: EditKind = EditKind.block
    """The form of edits until those of the model have been counted."""
    shaped: bool = False
    """Whether edits are asked for as JSON of a given schema."""
    brief: bool = False
    """Whether questions for edits and tests say only what is needed: a small model loses its way in a long one."""
    stronger: str = ""
    """The strong model, where another one writes; empty where there is none that could be asked instead."""
    stalls: dict[str, StallLimits] = {}
    """By model, of those for which that is set: how many attempts of it may bring nothing."""

    def answer(self, most: int) -> int:
        """Tokens that an answer may have: `most`, or a third of a small window."""
        return min(most, self.window // 3) if self.window else most

    def room(self, most: int) -> int:
        """Tokens that the question to such an answer may have; 0 for no end."""
        return self.window - self.answer(most) if self.window else 0
