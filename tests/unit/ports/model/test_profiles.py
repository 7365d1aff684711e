from __future__ import annotations

import pytest
from pydantic import ValidationError

from redstart.core.change import EditKind
from redstart.ports.model.endpoints import ENDPOINTS
from redstart.ports.model.port import Profile, Rates
from redstart.ports.model.prices import price
from redstart.ports.model.tiers import get_profile, load_shipped_profiles


def test_unknown_model_gets_the_default_profile() -> None:
    assert get_profile("openai:qwen-local") == Profile()
    assert not Profile().tools


def test_known_models_have_their_capabilities() -> None:
    claude, gpt, small = map(
        get_profile, ("anthropic:claude-sonnet-5-5", "openai:gpt-5-mini", "ollama:qwen2.5-coder:1.5b")
    )
    assert (claude.tools, claude.caching, claude.context) == (True, True, 1_000_000)
    assert (gpt.tools, gpt.shapes, gpt.caching, gpt.context) == (True, True, False, 400_000)
    assert (small.tools, small.looks, small.edits, small.context) == (False, 0, EditKind.whole, 8192)


def test_every_shipped_profile_has_a_known_provider() -> None:
    for key in load_shipped_profiles():
        assert key.partition(":")[0] in {*ENDPOINTS, "*"}


def test_configured_fields_override_the_shipped_profile() -> None:
    overrides = {
        "anthropic:claude-sonnet-5-5": Profile(looks=3),
        "anthropic:claude-*": Profile(looks=4, context=50_000),
        "*": Profile(tools=False),
        "openai:gpt-5": Profile(looks=9),
    }
    profile = get_profile("anthropic:claude-sonnet-5-5", overrides)
    assert (profile.looks, profile.context, profile.tools, profile.caching) == (3, 50_000, False, True)


def test_exact_name_overrides_a_longer_pattern() -> None:
    overrides = {"ollama:a": Profile(looks=1), "[o]llama:*": Profile(looks=2)}
    assert get_profile("ollama:a", overrides).looks == 1


@pytest.mark.parametrize("values", [{"context": 0}, {"looks": -1}, {"edits": "poem"}, {"unknown": 1}])
def test_invalid_profile_is_rejected(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Profile.model_validate(values)


def test_rates_price_models_missing_from_the_table() -> None:
    rates = Rates(input=2.0, output=8.0, cached=0.5, written=3.0)
    assert price("openai:in-house", 1_000_000, 1_000_000) is None
    assert price("openai:in-house", 1_000_000, 500_000, rates=rates) == 6.0
    assert price("openai:in-house", 1_000_000, 0, 400_000, 200_000, rates=rates) == pytest.approx(0.8 + 0.2 + 0.6)
    assert price("openai:in-house", 1_000_000, 0, 400_000, rates=Rates(input=2.0, output=8.0)) == 2.0


def test_cache_writes_cost_more_and_cache_reads_less() -> None:
    plain_price, read, write_price = (
        price("anthropic:claude-sonnet-4-6", 1000, 0, *parts) for parts in ((), (900,), (0, 900))
    )
    assert plain_price is not None
    assert read is not None
    assert write_price is not None
    assert read < plain_price < write_price
