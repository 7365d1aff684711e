"""The test writer sees whole acceptance criteria, and the run that carries them stays small."""

from __future__ import annotations

from redstart.core.learning import Plan, Subtask
from redstart.core.run import MOST_CRITERIA
from redstart.steps.plan.question import CRITERIA_BYTES, whole_criteria
from redstart.toolkit.prompts import sections


def test_ten_long_criteria_are_shown_to_their_last_word():
    criteria = [f"criterion {number} " + "says much about what goes in and out, " * 10 + "end." for number in range(10)]
    kept = whole_criteria(criteria)
    shown = sections.plan(Plan(summary="s", subtasks=(Subtask(title="t", criteria=kept),)))
    assert all(criterion in shown for criterion in criteria)


def test_what_a_run_cannot_carry_is_left_out_and_never_cut():
    criteria = ["𝒶" * 500] * 100
    kept = whole_criteria(criteria)
    assert set(kept) == {"𝒶" * 500}
    assert sum(len(item.encode()) for item in kept) <= CRITERIA_BYTES
    assert len(whole_criteria(["short"] * 100)) == MOST_CRITERIA
    assert whole_criteria(["a", "b" * 900, "c"], room=500) == ("a",)
