"""The user's choices for a run: the kind of program, its metric, and how models are asked."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.change import EditKind, Snapshot
from redstart.core.frozen import FrozenValue
from redstart.core.progress import StallLimits


class ProgramKind(StrEnum):
    """The kind of program to create, if the user names one."""

    web_app = "web_app"
    data_pipeline = "data_pipeline"
    cli_tool = "cli_tool"
    library = "library"


class MetricDirection(StrEnum):
    smaller = "smaller"
    larger = "larger"


class Metric(FrozenValue):
    """A measure of a program besides its tests."""

    command: tuple[str, ...]
    """The command runs in the sandbox; the last number that it prints counts."""
    better: MetricDirection = MetricDirection.smaller
    start: Snapshot
    """The program before any improvement. No improvement may leave it worse than that."""


class QuestionOptions(FrozenValue):
    """How models are asked, from their profiles at the start of the run. A run does not change it later."""

    window: int = Field(default=0, ge=0)
    """Maximum tokens of a question and its answer together; 0 if unknown."""
    edits: EditKind = EditKind.block
    """The edit form to use until the model's own edits have been counted."""
    shaped: bool = False
    """Whether edits are requested as JSON with a schema."""
    brief: bool = False
    """Whether questions for edits and tests hold only the essentials: a small model gets lost in a long prompt."""
    ends_unchanged: bool = Field(default=False, exclude_if=lambda ends: not ends)
    """Whether an answer that changes nothing ends the attempt, and the next one is asked at a higher temperature. Else
    the model is told so in the same attempt, as in runs from before this existed."""
    omits_documentation: bool = Field(default=False, exclude_if=lambda omits: not omits)
    """Whether a brief question asks for whole files without comments and docstrings, which are put back: a small model
    then answers in half of the tokens, and fixes more."""
    asks_for_card: bool = Field(default=True, exclude_if=lambda asks: asks)
    """Whether a model describes a verified fix for later runs. Else the card holds the changed lines: a small model
    writes more for a card than for most fixes."""
    session_calls: int = Field(default=0, ge=0, exclude_if=lambda count: not count)
    """Maximum tool calls of a working session; 0 if the model answers with all its edits at once."""
    first_temperature: float = Field(default=0.0, ge=0, exclude_if=lambda value: not value)
    """The temperature of the first question for edits."""
    fast: bool = Field(default=False, exclude_if=lambda flag: not flag)
    """Whether the fast model writes the edits."""
    stronger: str = ""
    """The strong model, if another model writes; empty if there is no stronger one to ask."""
    stalls: dict[str, StallLimits] = {}
    """Stall limits by model, for the models that have their own."""

    def answer(self, limit: int) -> int:
        """Return the maximum tokens of an answer: the given limit, or a third of a small window."""
        return min(limit, self.window // 3) if self.window else limit

    def compute_question_tokens(self, limit: int) -> int:
        """Return the maximum tokens of the question for such an answer; 0 for no limit."""
        return self.window - self.answer(limit) if self.window else 0
