from __future__ import annotations

import pytest
from pydantic import ValidationError

from redstart.core.change import EditKind
from redstart.ports.model.endpoints import ENDPOINTS
from redstart.ports.model.port import Profile, Rates
from redstart.ports.model.prices import price
from redstart.ports.model.tiers import profile_of, shipped


def test_an_unknown_model_is_taken_for_a_plain_one() -> None:
    assert profile_of("openai:qwen-local") == Profile()
    assert not Profile().tools


def test_known_ones_have_what_they_have() -> None:
    claude, gpt, small = map(
        profile_of, ("anthropic:claude-sonnet-5-5", "openai:gpt-5-mini", "ollama:qwen2.5-coder:1.5b")
    )
    assert (claude.tools, claude.caching, claude.context) == (True, True, 1_000_000)
    assert (gpt.tools, gpt.shapes, gpt.caching, gpt.context) == (True, True, False, 400_000)
    assert (small.tools, small.looks, small.edits, small.context) == (False, 0, EditKind.whole, 8192)


def test_every_shipped_profile_is_of_a_known_provider() -> None:
    for key in shipped():
        assert key.partition(":")[0] in {*ENDPOINTS, "*"}


def test_what_is_set_outranks_what_is_shipped_and_leaves_the_rest() -> None:
    over = {
        "anthropic:claude-sonnet-5-5": Profile(looks=3),
        "anthropic:claude-*": Profile(looks=4, context=50_000),
        "*": Profile(tools=False),
        "openai:gpt-5": Profile(looks=9),
    }
    profile = profile_of("anthropic:claude-sonnet-5-5", over)
    assert (profile.looks, profile.context, profile.tools, profile.caching) == (3, 50_000, False, True)


def test_an_exact_name_outranks_a_longer_pattern() -> None:
    over = {"ollama:a": Profile(looks=1), "[o]llama:*": Profile(looks=2)}
    assert profile_of("ollama:a", over).looks == 1


@pytest.mark.parametrize("wrong", [{"context": 0}, {"looks": -1}, {"edits": "poem"}, {"unknown": 1}])
def test_a_profile_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Profile.model_validate(wrong)


def test_rates_price_what_the_table_does_not_know() -> None:
    rates = Rates(input=2.0, output=8.0, cached=0.5, written=3.0)
    assert price("openai:in-house", 1_000_000, 1_000_000) is None
    assert price("openai:in-house", 1_000_000, 500_000, rates=rates) == 6.0
    assert price("openai:in-house", 1_000_000, 0, 400_000, 200_000, rates=rates) == pytest.approx(0.8 + 0.2 + 0.6)
    assert price("openai:in-house", 1_000_000, 0, 400_000, rates=Rates(input=2.0, output=8.0)) == 2.0


def test_writing_to_the_cache_costs_more_and_reading_from_it_less() -> None:
    plain, read, written = (price("anthropic:claude-sonnet-4-6", 1000, 0, *parts) for parts in ((), (900,), (0, 900)))
    assert plain is not None
    assert read is not None
    assert written is not None
    assert read < plain < written
