"""The test writer sees whole acceptance criteria, and the run that carries them stays small."""

from __future__ import annotations

from redstart.core.learning import Plan, Subtask
from redstart.core.run import MOST_CRITERIA
from redstart.steps.plan.question import CRITERIA_BYTES, limit_criteria
from redstart.toolkit.prompts import sections


def test_ten_long_criteria_are_shown_in_full():
    criteria = [f"criterion {number} " + "says much about what goes in and out, " * 10 + "end." for number in range(10)]
    kept_criteria = limit_criteria(criteria)
    plan_text = sections.plan(Plan(summary="s", subtasks=(Subtask(title="t", criteria=kept_criteria),)))
    assert all(criterion in plan_text for criterion in criteria)


def test_criteria_beyond_the_limit_are_omitted_and_never_truncated():
    criteria = ["𝒶" * 500] * 100
    kept_criteria = limit_criteria(criteria)
    assert set(kept_criteria) == {"𝒶" * 500}
    assert sum(len(item.encode()) for item in kept_criteria) <= CRITERIA_BYTES
    assert len(limit_criteria(["short"] * 100)) == MOST_CRITERIA
    assert limit_criteria(["a", "b" * 900, "c"], bytes_left=500) == ("a",)
