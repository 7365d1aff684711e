"""The answer types of an audit's questions."""

from __future__ import annotations

from pydantic import BaseModel


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
