"""The limits of improvements as the user types them."""

from __future__ import annotations

import pytest

from redstart.app.improve import ImproveLimits, build_run_limits, read_cap
from redstart.app.settings import Models, Settings
from redstart.cli.improve import BetterName
from redstart.core.errors import ConfigError
from redstart.core.run_preferences import MetricDirection


@pytest.mark.parametrize(
    ("said", "cap"),
    [
        ("5", ImproveLimits(usd=5)),
        ("$2.50", ImproveLimits(usd=2.5)),
        ("3 usd", ImproveLimits(usd=3)),
        ("90 min", ImproveLimits(minutes=90)),
        (" 2h ", ImproveLimits(minutes=120)),
        ("1.5 hours", ImproveLimits(minutes=90)),
        ("none", ImproveLimits()),
    ],
)
def test_answer_is_read_as_money_or_time(said, cap):
    assert read_cap(said) == cap


@pytest.mark.parametrize("said", ["", "a lot", "-5", "5 apples"])
def test_other_answers_are_rejected_with_the_flags(said):
    with pytest.raises(ConfigError) as refused:
        read_cap(said)
    assert all(flag in refused.value.remedy for flag in ("--max-usd", "--max-minutes", "--no-limit"))


def make_settings(model: str) -> Settings:
    return Settings(models=Models(strong=model))


def test_only_given_limits_apply():
    priced_settings = make_settings("openai:gpt-4o")
    none = build_run_limits(priced_settings, ImproveLimits())
    assert (none.minutes, none.usd, none.tokens) == (None, None, None)
    assert none.stall == priced_settings.limits.stall
    limits = build_run_limits(priced_settings, ImproveLimits(usd=3, minutes=10))
    assert (limits.usd, limits.minutes, limits.tokens, limits.attempts) == (
        3,
        10,
        None,
        priced_settings.limits.attempts,
    )


def test_money_limit_without_a_price_falls_back_to_tokens():
    unpriced_settings = make_settings("openai:nobody-knows-this")
    assert build_run_limits(unpriced_settings, ImproveLimits(usd=3)).tokens == unpriced_settings.limits.tokens
    assert build_run_limits(unpriced_settings, ImproveLimits(minutes=3)).tokens is None


def test_metric_directions_match_the_command():
    assert [name.value for name in BetterName] == [direction.value for direction in MetricDirection]
