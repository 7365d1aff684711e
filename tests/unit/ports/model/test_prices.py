from __future__ import annotations

import socket

import pytest

from redstart.core.chat import Message, Role
from redstart.ports.model.prices import estimate_tokens, price


def test_prices_of_known_models_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for model in ("openai:gpt-4o", "anthropic:claude-sonnet-4-6", "openrouter:openai/gpt-5"):
        cost = price(model, 1_000_000, 0)
        assert cost is not None
        assert 0.1 < cost < 100


def test_output_costs_more_than_input_and_cached_input_less() -> None:
    input_price, output_price, cached_price = (
        price("openai:gpt-4o", *count) for count in ((1000, 0), (0, 1000), (1000, 0, 1000))
    )
    assert input_price is not None
    assert output_price is not None
    assert cached_price is not None
    assert cached_price < input_price < output_price


def test_cached_tokens_are_limited_to_the_input() -> None:
    assert price("openai:gpt-4o", 10, 5, 999) == price("openai:gpt-4o", 10, 5, 10)


@pytest.mark.parametrize("model", ["openai:local", "nobody:gpt-4o", "", "gpt-4o", "scripted:model"])
def test_unknown_model_has_no_price(model: str) -> None:
    assert price(model, 1000, 1000) is None


def test_local_model_is_free() -> None:
    assert price("ollama:qwen2.5-coder:1.5b", 1000, 1000) == 0.0


def test_token_estimate_is_conservative() -> None:
    messages = [Message(role=Role.user, text="x" * 10), Message(role=Role.system, text="")]
    assert estimate_tokens(messages) == 4 + 20 + 20
    assert estimate_tokens([]) == 0
