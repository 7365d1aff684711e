"""Which model is asked which question."""

from __future__ import annotations

import pytest

from redstart.core.chat import Ask, Tier
from redstart.ports.model.tiers import ModelRoster

BOTH = ModelRoster(fast="ollama:small", strong="openai:big")


def ask(question: str, tier: Tier, site: str = "") -> Ask:
    return Ask(question=question, tier=tier, messages=(), site=site)


def test_each_question_goes_to_the_model_of_its_tier() -> None:
    assert BOTH.choose_models(ask("patch", Tier.strong)) == ["openai:big"]
    assert BOTH.choose_models(ask("plan", Tier.fast)) == ["ollama:small"]


def test_step_can_use_another_tier_or_its_own_model() -> None:
    models = BOTH._replace(steps={"patch": "fast", "plan": "strong", "remember": "groq:third"})
    assert models.choose_models(ask("patch", Tier.strong)) == ["ollama:small"]
    assert models.choose_models(ask("plan", Tier.fast)) == ["openai:big"]
    assert models.choose_models(ask("remember", Tier.fast)) == ["groq:third"]
    assert models.choose_models(ask("reflect", Tier.fast)) == ["ollama:small"]
    assert models.get_default_model("remember", Tier.fast) == "groq:third"
    assert models.names == ["openai:big", "ollama:small", "groq:third"]


def test_fallback_models_follow_without_duplicates() -> None:
    models = BOTH._replace(fallback=("groq:third", "openai:big"))
    assert models.choose_models(ask("patch", Tier.strong)) == ["openai:big", "groq:third"]
    assert models.choose_models(ask("plan", Tier.fast)) == ["ollama:small", "groq:third", "openai:big"]
    assert models.names == ["openai:big", "ollama:small", "groq:third"]


@pytest.mark.parametrize(
    ("site", "model"),
    [
        ("1/plan/0", "ollama:small"),
        ("2/plan/0", "ollama:small"),
        ("3/plan/0", "openai:big"),
        ("12/plan/4", "openai:big"),
        ("", "ollama:small"),
    ],
)
def test_stuck_run_asks_the_strong_model(site: str, model: str) -> None:
    assert BOTH.choose_models(ask("plan", Tier.fast, site)) == [model]


def test_stuck_patch_moves_from_the_fast_to_the_strong_model() -> None:
    models = BOTH._replace(steps={"patch": "fast"}, escalate=1, fallback=("groq:third",))
    assert models.choose_models(ask("patch", Tier.strong, "1/patch/0")) == ["ollama:small", "groq:third"]
    assert models.choose_models(ask("patch", Tier.strong, "2/patch/0")) == ["openai:big", "groq:third"]


def test_stuck_question_asks_the_strong_model_at_any_attempt() -> None:
    models = BOTH._replace(steps={"patch": "fast"}, escalate=0)
    stuck_ask = ask("patch", Tier.strong, "1/patch/0").model_copy(update={"stuck": True})
    assert models.choose_models(stuck_ask) == ["openai:big"]
    assert BOTH._replace(steps={"patch": "groq:third"}).choose_models(stuck_ask) == ["groq:third"]
    assert BOTH.choose_models(ask("remember", Tier.fast, "1/remember/0").model_copy(update={"stuck": True})) == [
        "ollama:small"
    ]
    assert [item.get_stronger_model("patch", Tier.strong) for item in (models, BOTH)] == ["openai:big", ""]


def test_question_that_decides_no_attempt_stays_with_the_fast_model() -> None:
    assert BOTH.choose_models(ask("remember", Tier.fast, "9/remember/0")) == ["ollama:small"]


def test_step_with_its_own_model_keeps_it() -> None:
    models = BOTH._replace(steps={"plan": "groq:third"})
    assert models.choose_models(ask("plan", Tier.fast, "9/plan/0")) == ["groq:third"]


def test_escalation_can_be_turned_off() -> None:
    assert BOTH._replace(escalate=0).choose_models(ask("plan", Tier.fast, "9/plan/0")) == ["ollama:small"]
