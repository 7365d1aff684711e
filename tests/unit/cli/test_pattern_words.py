from __future__ import annotations

from typing import Any

from redstart.cli.words import words
from redstart.core.learning import NewMemories, Plan
from redstart.engines.brief import brief
from redstart.testing.states import event, pattern


def said(name: str, artifact: Any) -> str:
    return words(event(name=name, phase="end", data={"seconds": 1.0, **brief(artifact)}))


def test_the_screen_says_that_plans_of_before_were_in_view_and_that_one_is_kept():
    plain = said("plan", Plan(summary="one module"))
    shown = said("plan", Plan(summary="one module", patterns=("a-1", "b-1")))
    assert "one module" in plain
    assert "earlier" not in plain
    assert shown == f"{plain} (with 2 earlier plans for a similar goal in view)"
    assert said("remember", NewMemories(pattern=pattern())) == "saved the plan for similar goals"
    assert said("remember", NewMemories()) == "nothing to save"
