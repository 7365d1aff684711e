"""The answer types: what each question that is answered in JSON asks for. Edits have a form of their own."""

from __future__ import annotations

from pydantic import BaseModel


class SubtaskAnswer(BaseModel):
    title: str
    criteria: list[str] = []


class PlanAnswer(BaseModel):
    summary: str
    subtasks: list[SubtaskAnswer] = []


class ReflectionAnswer(BaseModel):
    root_cause: str = ""
    what_failed: str = ""
    try_next: str = ""


class CardAnswer(BaseModel):
    summary: str
    root_cause: str
    fix: str
    debug_steps: list[str] = []


SHAPES: dict[str, type[BaseModel]] = {"plan": PlanAnswer, "reflect": ReflectionAnswer, "remember": CardAnswer}
"""By question."""
