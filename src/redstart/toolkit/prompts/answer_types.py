"""The answer types of all questions that are answered in JSON, including those of an audit."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, field_validator


class SubtaskAnswer(BaseModel):
    title: str
    criteria: list[str] = []
    needs: list[str] = []
    """Positions in the list, from 1, or a title if a model writes that instead."""


class PlanAnswer(BaseModel):
    summary: str
    subtasks: list[SubtaskAnswer] = []


class PackageAnswer(BaseModel):
    name: str
    reason: str = ""


class ProgramPlanAnswer(PlanAnswer):
    """The plan of a new program."""

    packages: list[PackageAnswer] = []

    @field_validator("packages", mode="before")
    @classmethod
    def _accept_bare_names(cls, value: object) -> object:
        """Accept a list of bare names, as some models write it."""
        if not isinstance(value, list):
            return value
        return [{"name": item} if isinstance(item, str) else item for item in cast("list[object]", value)]


class ImprovementAnswer(BaseModel):
    kind: str
    title: str
    criteria: list[str] = []


class ReflectionAnswer(BaseModel):
    root_cause: str = ""
    what_failed: str = ""
    try_next: str = ""


class CardAnswer(BaseModel):
    summary: str
    root_cause: str
    fix: str
    debug_steps: list[str] = []
    when: str = ""
    advice: str = ""
    """Together with `when`, a lesson. Both are empty if there is none."""


class EditAnswer(BaseModel):
    path: str
    search: str = ""
    text: str


class PatchAnswer(BaseModel):
    why: str
    edits: list[EditAnswer]
    test_change: str = ""


# No docstring here: it would become part of the schema that the model sees.
class ReflectingPatchAnswer(PatchAnswer):
    root_cause: str = ""
    what_failed: str = ""
    try_next: str = ""


SHAPES: dict[str, type[BaseModel]] = {
    "plan": PlanAnswer,
    "patch": PatchAnswer,
    "reflect": ReflectionAnswer,
    "remember": CardAnswer,
}
"""The answer type of each question.

A patch is requested as text, in one of several forms, unless the model's profile says otherwise.
"""


class ScopeAnswer(BaseModel):
    """Which reviews a goal asks for, and of which files."""

    summary: str = ""
    reviews: list[str] = []
    files: list[str] = []


class RemarkAnswer(BaseModel):
    """One claim about one line. What it quotes must stand there."""

    path: str
    line: int
    quote: str
    kind: str = "code"
    risk: str = "medium"
    message: str


class ReviewAnswer(BaseModel):
    findings: list[RemarkAnswer] = []
