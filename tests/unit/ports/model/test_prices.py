from __future__ import annotations

import socket

import pytest

from redstart.core.chat import Message, Role
from redstart.ports.model.prices import estimate_tokens, price


def test_known_models_have_a_price_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for model in ("openai:gpt-4o", "anthropic:claude-sonnet-4-6", "openrouter:openai/gpt-5"):
        cost = price(model, 1_000_000, 0)
        assert cost is not None
        assert 0.1 < cost < 100


def test_output_costs_more_than_input_and_the_cache_less() -> None:
    plain, said, cached = (price("openai:gpt-4o", *count) for count in ((1000, 0), (0, 1000), (1000, 0, 1000)))
    assert plain is not None
    assert said is not None
    assert cached is not None
    assert cached < plain < said


def test_more_cached_than_sent_is_taken_as_all_of_it() -> None:
    assert price("openai:gpt-4o", 10, 5, 999) == price("openai:gpt-4o", 10, 5, 10)


@pytest.mark.parametrize("model", ["openai:local", "nobody:gpt-4o", "", "gpt-4o", "scripted:model"])
def test_an_unknown_price_is_none(model: str) -> None:
    assert price(model, 1000, 1000) is None


def test_what_runs_on_this_machine_is_free() -> None:
    assert price("ollama:qwen2.5-coder:1.5b", 1000, 1000) == 0.0


def test_the_estimate_is_on_the_safe_side() -> None:
    messages = [Message(role=Role.user, text="x" * 10), Message(role=Role.system, text="")]
    assert estimate_tokens(messages) == 4 + 20 + 20
    assert estimate_tokens([]) == 0
