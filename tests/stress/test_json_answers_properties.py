"""What is read from an answer, and what is refused: a wrong reading is worse than none."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from redstart.toolkit.prompts.answer_types import PlanAnswer
from redstart.toolkit.prompts.answers import read_answer

PLAN = {"summary": "Do it.", "subtasks": [{"title": "A", "criteria": ["x", "y"]}, {"title": "B", "criteria": ["z"]}]}


class Shape(BaseModel):
    name: str
    count: int = 0


@settings(deadline=None)
@given(st.text(), st.booleans())
def test_read_answer_never_raises(text, truncated):
    assert read_answer(text, Shape, truncated=truncated).value is None or "name" in text.casefold()


@settings(deadline=None)
@given(st.data())
def test_lost_or_doubled_mark_never_produces_another_text(data):
    """Braces, brackets, commas, colons: the result is the intended text, a closed part of it, or nothing."""
    text = json.dumps(PLAN)
    index = data.draw(st.sampled_from([place for place, mark in enumerate(text) if mark in '{}[],:"']))
    broken_text = text[:index] + data.draw(st.sampled_from(["", text[index] * 2, *"{}[],:"])) + text[index + 1 :]
    parsed_plan = read_answer(broken_text, PlanAnswer).value
    if parsed_plan is not None:
        texts = [parsed_plan.summary, *(item for task in parsed_plan.subtasks for item in (task.title, *task.criteria))]
        assert set(texts) == {"Do it.", "A", "x", "y", "B", "z"}
