from __future__ import annotations

from typing import Any

from redstart.cli.event_text import describe_step
from redstart.core.learning import NewMemories, Plan
from redstart.engines.step_summary import summarize_artifact
from redstart.testing.states import make_event, make_pattern


def format_event(name: str, artifact: Any) -> str:
    return describe_step(make_event(name=name, phase="end", data={"seconds": 1.0, **summarize_artifact(artifact)}))


def test_screen_mentions_recalled_earlier_plans_and_the_saved_plan():
    plain_text = format_event("plan", Plan(summary="one module"))
    pattern_text = format_event("plan", Plan(summary="one module", patterns=("a-1", "b-1")))
    assert "one module" in plain_text
    assert "earlier" not in plain_text
    assert pattern_text == f"{plain_text} (considered 2 earlier plans for similar goals)"
    assert format_event("remember", NewMemories(pattern=make_pattern())) == "saved the plan for similar goals"
    assert format_event("remember", NewMemories()) == "nothing to save"
