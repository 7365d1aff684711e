"""The limits of improvements as the user types them."""

from __future__ import annotations

import pytest

from redstart.app.improve import ImproveLimits, capped, read_cap
from redstart.app.settings import Models, Settings
from redstart.cli.improve import BetterName
from redstart.core.errors import ConfigError
from redstart.core.wishes import MetricDirection


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
def test_an_answer_is_read_as_money_or_time(said, cap):
    assert read_cap(said) == cap


@pytest.mark.parametrize("said", ["", "a lot", "-5", "5 apples"])
def test_what_is_neither_is_refused_with_the_flags(said):
    with pytest.raises(ConfigError) as refused:
        read_cap(said)
    assert all(flag in refused.value.remedy for flag in ("--max-usd", "--max-minutes", "--no-limit"))


def settings(model: str) -> Settings:
    return Settings(models=Models(strong=model))


def test_only_what_was_named_binds():
    known = settings("openai:gpt-4o")
    none = capped(known, ImproveLimits())
    assert (none.minutes, none.usd, none.tokens) == (None, None, None)
    assert none.stall == known.limits.stall
    both = capped(known, ImproveLimits(usd=3, minutes=10))
    assert (both.usd, both.minutes, both.tokens, both.attempts) == (3, 10, None, known.limits.attempts)


def test_money_without_a_price_is_bound_by_tokens():
    unknown = settings("openai:nobody-knows-this")
    assert capped(unknown, ImproveLimits(usd=3)).tokens == unknown.limits.tokens
    assert capped(unknown, ImproveLimits(minutes=3)).tokens is None


def test_the_words_for_better_are_the_same_everywhere():
    assert [name.value for name in BetterName] == [direction.value for direction in MetricDirection]
