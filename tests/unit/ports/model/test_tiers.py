"""Which model is asked which question."""

from __future__ import annotations

import pytest

from redstart.core.chat import Ask, Tier
from redstart.ports.model.tiers import ModelRoster

BOTH = ModelRoster(fast="ollama:small", strong="openai:big")


def ask(question: str, tier: Tier, site: str = "") -> Ask:
    return Ask(question=question, tier=tier, messages=(), site=site)


def test_each_question_goes_to_the_model_of_its_tier() -> None:
    assert BOTH.chosen(ask("patch", Tier.strong)) == ["openai:big"]
    assert BOTH.chosen(ask("plan", Tier.fast)) == ["ollama:small"]


def test_a_step_can_be_given_another_tier_or_a_model_of_its_own() -> None:
    roster = BOTH._replace(steps={"patch": "fast", "plan": "strong", "remember": "groq:third"})
    assert roster.chosen(ask("patch", Tier.strong)) == ["ollama:small"]
    assert roster.chosen(ask("plan", Tier.fast)) == ["openai:big"]
    assert roster.chosen(ask("remember", Tier.fast)) == ["groq:third"]
    assert roster.chosen(ask("reflect", Tier.fast)) == ["ollama:small"]
    assert roster.usual("remember", Tier.fast) == "groq:third"
    assert roster.names == ["openai:big", "ollama:small", "groq:third"]


def test_the_others_come_after_it_each_once() -> None:
    roster = BOTH._replace(fallback=("groq:third", "openai:big"))
    assert roster.chosen(ask("patch", Tier.strong)) == ["openai:big", "groq:third"]
    assert roster.chosen(ask("plan", Tier.fast)) == ["ollama:small", "groq:third", "openai:big"]
    assert roster.names == ["openai:big", "ollama:small", "groq:third"]


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
def test_a_run_that_is_stuck_asks_the_strong_model(site: str, model: str) -> None:
    assert BOTH.chosen(ask("plan", Tier.fast, site)) == [model]


def test_so_does_a_patch_that_was_given_to_the_fast_one() -> None:
    roster = BOTH._replace(steps={"patch": "fast"}, escalate=1, fallback=("groq:third",))
    assert roster.chosen(ask("patch", Tier.strong, "1/patch/0")) == ["ollama:small", "groq:third"]
    assert roster.chosen(ask("patch", Tier.strong, "2/patch/0")) == ["openai:big", "groq:third"]


def test_so_does_a_question_that_says_it_is_stuck_whatever_the_attempt() -> None:
    roster = BOTH._replace(steps={"patch": "fast"}, escalate=0)
    stuck = ask("patch", Tier.strong, "1/patch/0").model_copy(update={"stuck": True})
    assert roster.chosen(stuck) == ["openai:big"]
    assert BOTH._replace(steps={"patch": "groq:third"}).chosen(stuck) == ["groq:third"]
    assert BOTH.chosen(ask("remember", Tier.fast, "1/remember/0").model_copy(update={"stuck": True})) == [
        "ollama:small"
    ]
    assert [item.stronger("patch", Tier.strong) for item in (roster, BOTH)] == ["openai:big", ""]


def test_what_does_not_decide_an_attempt_stays_with_the_fast_model() -> None:
    assert BOTH.chosen(ask("remember", Tier.fast, "9/remember/0")) == ["ollama:small"]


def test_a_step_with_a_model_of_its_own_keeps_it() -> None:
    roster = BOTH._replace(steps={"plan": "groq:third"})
    assert roster.chosen(ask("plan", Tier.fast, "9/plan/0")) == ["groq:third"]


def test_the_fast_model_can_be_left_alone_with_it() -> None:
    assert BOTH._replace(escalate=0).chosen(ask("plan", Tier.fast, "9/plan/0")) == ["ollama:small"]
