"""How a question is sent and how its answer is read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from redstart.core.chat import Answer, Ask, Message, Role, Tier, Tool
from redstart.core.errors import ConfigError
from redstart.ports.model.endpoints import ENDPOINTS
from redstart.ports.model.port import Profile, Rates
from redstart.ports.model.prices import price
from redstart.ports.model.providers import DEFAULT_PROFILE, connect
from support.server import Reply, Request, ScriptedServer, Wire

TALK = Ask(
    question="patch",
    tier=Tier.fast,
    messages=(
        Message(role=Role.system, text="You repair code."),
        Message(role=Role.user, text="It is red."),
        Message(role=Role.assistant, text="Where?"),
        Message(role=Role.user, text="Line 7."),
    ),
    max_tokens=321,
    temperature=0.5,
)


def exchange(
    name: str,
    *,
    key: str | None = "key",
    reply: Reply | None = None,
    ask: Ask = TALK,
    profile: Profile = DEFAULT_PROFILE,
) -> tuple[Request, Answer]:
    with ScriptedServer(lambda _: reply or Reply("done")) as server:
        url = server.anthropic_url if name.startswith("anthropic") else server.openai_url
        answer = asyncio.run(connect(name, base_url=url, api_key=key, deadline=600, profile=profile).ask(ask))
        return server.requests[0], answer


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-sonnet-4-6", "groq:llama-3.3-70b-versatile"])
def test_whole_conversation_is_sent(name: str) -> None:
    request, _ = exchange(name)
    assert request.model == name.partition(":")[2]
    assert request.system == "You repair code."
    assert request.messages == (("user", "It is red."), ("assistant", "Where?"), ("user", "Line 7."))
    assert request.max_tokens == 321
    assert request.body["temperature"] == 0.5


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("openai:gpt-4o", Wire.openai),
        ("openrouter:qwen/qwen3-coder", Wire.openai),
        ("openrouter:no-slash", Wire.openai),
        ("groq:llama-3.3-70b-versatile", Wire.openai),
        ("google:gemini-2.5-pro", Wire.openai),
        ("azure:our-deployment", Wire.openai),
        ("ollama:qwen2.5-coder:1.5b", Wire.openai),
        ("anthropic:claude-sonnet-4-6", Wire.anthropic),
    ],
)
def test_each_provider_uses_its_wire_format(name: str, wire: Wire) -> None:
    request, answer = exchange(name, key=" key\n")
    assert request.wire is wire
    assert request.headers["authorization"] == "Bearer key"
    assert request.model == name.partition(":")[2]
    assert answer.model == name


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-sonnet-4-6"])
def test_long_answer_is_not_streamed(name: str) -> None:
    request, _ = exchange(name, ask=TALK.model_copy(update={"max_tokens": 60_000}))
    assert request.max_tokens == 60_000
    assert not request.body.get("stream")


@pytest.mark.parametrize("name", ["openai:whatever", "anthropic:whatever", "ollama:whatever"])
def test_no_key_is_needed_with_a_custom_address(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID"):
        monkeypatch.setenv(variable, "for-another-endpoint")
    request, answer = exchange(name, key=None)
    assert answer.text == "done"
    assert "for-another-endpoint" not in str(request.headers)


def test_local_model_bypasses_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert exchange("ollama:any")[1].text == "done"


@pytest.mark.parametrize(
    "name",
    ["openai:gpt-5", "openai:gpt-5-mini", "openai:o3", "anthropic:claude-opus-5", "anthropic:claude-haiku-5-5"],
)
def test_reasoning_model_is_sent_no_temperature(name: str) -> None:
    request, _ = exchange(name)
    assert "temperature" not in request.body
    assert request.max_tokens == 321


def test_token_limit_uses_the_parameter_name_of_the_endpoint() -> None:
    assert "max_tokens" in exchange("openai:local")[0].body
    assert "max_tokens" in exchange("openrouter:openai/gpt-5")[0].body
    assert "max_completion_tokens" in exchange("openai:gpt-5")[0].body


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-sonnet-4-6"])
def test_usage_and_price_follow_the_counts_of_the_endpoint(name: str) -> None:
    request, answer = exchange(name, reply=Reply("x" * 400, cached_tokens=3))
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens) == (-(-len(request.text) // 4), 100)
    assert usage.cached_tokens == 3
    assert usage.usd == price(name, usage.input_tokens, 100, 3)
    assert usage.usd is not None
    assert 0 < usage.usd < price(name, usage.input_tokens, 100, 0)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-sonnet-4-6"])
def test_tokens_not_counted_by_the_endpoint_are_estimated(name: str) -> None:
    usage = exchange(name, reply=Reply("x" * 300, usage=False))[1].usage
    assert usage.input_tokens > 80
    assert usage.output_tokens >= 100
    assert usage.usd


def count_cache_marks(request: Request) -> int:
    return json.dumps(request.body).count('"cache_control"')


def test_stable_prefix_is_marked_for_caching() -> None:
    tool = Tool(name="read", description="Lines.", parameters={"type": "object", "properties": {}})
    ask = TALK.model_copy(update={"tools": (tool,)})
    caching, plain_profile = Profile(tools=True, caching=True), Profile(tools=True)
    request, _ = exchange("anthropic:claude-sonnet-4-6", ask=ask, profile=caching)
    assert "cache_control" in request.body["system"][-1]
    assert "cache_control" in request.body["tools"][-1]
    assert "cache_control" in request.body["messages"][-1]["content"][-1]
    assert count_cache_marks(request) == 3
    assert count_cache_marks(exchange("anthropic:claude-sonnet-4-6", ask=ask, profile=plain_profile)[0]) == 0
    assert count_cache_marks(exchange("openai:gpt-4o", ask=ask, profile=caching)[0]) == 0


def test_cache_writes_are_priced_separately() -> None:
    name = "anthropic:claude-sonnet-4-6"
    written_usage, plain_usage = (exchange(name, reply=Reply("x", written_tokens=tokens))[1].usage for tokens in (6, 0))
    assert written_usage.input_tokens == plain_usage.input_tokens
    assert written_usage.usd == price(name, written_usage.input_tokens, 1, 0, 6)
    assert written_usage.usd is not None
    assert plain_usage.usd is not None
    assert written_usage.usd > plain_usage.usd


def test_profile_rates_price_a_call() -> None:
    rates = Rates(input=1.0, output=2.0)
    usage = exchange("openai:in-house", reply=Reply("x" * 400), profile=Profile(rates=rates))[1].usage
    assert usage.usd == pytest.approx((usage.input_tokens + 200) / 1_000_000)


def test_unknown_model_has_no_price_and_local_model_is_free() -> None:
    assert exchange("openai:local")[1].usage.usd is None
    assert exchange("ollama:local")[1].usage.usd == 0.0


@pytest.mark.parametrize("provider", [name for name, endpoint in ENDPOINTS.items() if endpoint.variable])
def test_missing_key_error_names_the_variable(provider: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(f"{provider}:model", base_url=None, api_key="  ", deadline=1)
    assert caught.value.remedy == f"set {ENDPOINTS[provider].variable}"


def test_azure_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="azure:model needs the address of your own endpoint") as caught:
        connect("azure:model", base_url=None, api_key="key", deadline=1)
    assert "AZURE_OPENAI_ENDPOINT" in caught.value.remedy


def test_key_can_come_from_another_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        connect("openai:model", base_url=None, api_key=None, deadline=1, variable="TEAM_KEY")
    assert "TEAM_KEY, which is not set" in str(caught.value)
    assert caught.value.remedy == "export TEAM_KEY=…"


@pytest.mark.parametrize("name", ["", "gpt-5", "openai:", "nobody:model", ":model"])
def test_name_without_a_known_provider_is_rejected(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(name, base_url=None, api_key="key", deadline=1)
    for form in ("provider:name", "openai", "manual", "command:", "replay:"):
        assert form in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("gpt-5", "openai:gpt-5"),
        ("o3", "openai:o3"),
        ("claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("llama4", "ollama:llama4"),
        ("qwen2.5-coder:1.5b", "ollama:qwen2.5-coder:1.5b"),
        ("gpt-oss:20b", "ollama:gpt-oss:20b"),
        ("opnai:gpt-5", "openai:gpt-5"),
        ("OpenAI:gpt-5", "openai:gpt-5"),
        ("manuel", "manual"),
        ("comand:./ask", "command:./ask"),
    ],
)
def test_name_without_its_provider_gets_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(name, base_url=None, api_key="key", deadline=1)
    assert str(caught.value) == f"unknown model {name!r}"
    assert caught.value.remedy.splitlines()[0] == f"did you mean {suggestion}?"


@pytest.mark.parametrize("name", ["nobody:model", "banana", "openai:", ""])
def test_name_unlike_any_other_gets_no_suggestion(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(name, base_url=None, api_key="key", deadline=1)
    assert "did you mean" not in caught.value.remedy


@pytest.mark.parametrize(("url", "key"), [("localhost:8000", "key"), ("https://host", "ключ"), ("http://host", "a\nb")])
def test_invalid_address_or_key_is_rejected(url: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect("openai:model", base_url=url, api_key=key, deadline=1)
    assert key not in str(caught.value)


def test_ollama_needs_neither_key_nor_address() -> None:
    assert connect("ollama:qwen2.5-coder", base_url=None, api_key=None, deadline=1)


@pytest.mark.slow
def test_no_sdk_is_loaded_before_the_first_question() -> None:
    code = """
import sys
import redstart.ports.model.providers, redstart.ports.model.tiers, redstart.ports.model.gateway
import redstart.ports.model.replay, redstart.ports.model.prices, redstart.testing.model
from redstart.ports.model.providers import connect
connect("openai:gpt-5", base_url=None, api_key="key", deadline=1)
heavy = {"pydantic_ai", "openai", "anthropic", "genai_prices", "httpx", "httpx2"}
print(sorted(heavy & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"
