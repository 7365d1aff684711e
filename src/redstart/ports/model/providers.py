"""Real models over the wires of OpenAI (chat completions) and Anthropic (messages).

The only file that imports `pydantic_ai`. It and the SDKs take seconds to load, so that waits until the first question.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from redstart.core.chat import Answer, Ask, Fault, Message, Role, Usage
from redstart.core.errors import ConfigError, ModelError
from redstart.core.noun import clip
from redstart.ports.model.port import Model
from redstart.ports.model.prices import estimate_tokens, price

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model as Adapter
    from pydantic_ai.settings import ModelSettings

Build = Callable[["httpx2.AsyncClient"], "Adapter"]
"""Makes the library's model for one call, over the HTTP client of that call."""

_DETAIL = 200
"""How much of what an endpoint says of its failure is shown."""

_LOADING = threading.Lock()
"""Two threads that load libraries with circular imports at once may see half of one."""

_NO_KEY = "none"
"""Sent where no key is needed: the SDKs insist on one."""


class Endpoint(NamedTuple):
    url: str
    variable: str
    """The environment variable that people keep its key in; empty where it needs none."""


ENDPOINTS: Mapping[str, Endpoint] = {
    "openai": Endpoint("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Endpoint("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": Endpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "ollama": Endpoint("http://localhost:11434/v1", ""),
}
"""All speak the wire of chat completions but Anthropic's; `base_url` changes the address, not the wire."""


def connect(name: str, *, base_url: str | None, api_key: str | None, deadline: float) -> Model:
    """The model called `name`, which is `provider:model`. Nothing is sent yet, and no environment variable is read.

    `base_url` takes the place of the provider's own address; a key is then optional. `deadline` is in seconds and
    bounds each call as a whole, but for the loading of the SDK at the first one. Raises `ConfigError` for an unknown
    provider, a missing key or an unusable address.
    """
    provider, _, model = name.partition(":")
    endpoint = ENDPOINTS.get(provider)
    if endpoint is None or not model:
        raise ConfigError(
            f"{name!r} names no model that can be reached",
            remedy=f"write it as provider:model, where the provider is one of {', '.join(ENDPOINTS)}",
        )
    key = (api_key or "").strip()
    if not key and endpoint.variable and base_url is None:
        raise ConfigError(f"{name} needs a key", remedy=f"set {endpoint.variable}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the key for {name} holds characters that no key has", remedy=f"set {endpoint.variable}")
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise ConfigError(f"{base_url!r} is no address of a model", remedy="it begins with http:// or https://")
    url, own = base_url or endpoint.url, base_url is None
    if provider == "anthropic":
        load = partial(_anthropic, model, url, key or _NO_KEY)
    else:
        load = partial(_openai, provider, model, url, key or _NO_KEY, own=own and provider == "openai")
    return Provider(name, load, deadline=deadline, secret=key, variable=endpoint.variable)


class Provider:
    """One model at one endpoint. See `connect`.

    Each call has an HTTP client of its own, closed when the call ends: it belongs to no event loop, leaves nothing
    open behind it and never meets a connection that went stale. Nothing is retried here.
    """

    def __init__(self, name: str, load: Callable[[], Build], *, deadline: float, secret: str, variable: str) -> None:
        self._name = name
        self._load = load
        self._deadline = deadline
        self._secret = secret
        self._variable = variable
        self._ready: _Ready | None = None

    async def ask(self, ask: Ask) -> Answer:
        if self._ready is None:
            # In a thread, so that the display goes on meanwhile, and before the clock starts.
            await asyncio.to_thread(self._get_ready)
        ready = cast("_Ready", self._ready)
        try:
            async with asyncio.timeout(self._deadline), ready.http(self._deadline) as http:
                response = await _request(ready.build(http), ask)
        except TimeoutError:
            raise ModelError(
                f"{self._name} did not answer within {self._deadline:g} s",
                remedy="try again, or allow a call more time",
            ) from None
        # Whatever the SDKs make of a reply that is none, down to an AssertionError, is the endpoint's failure. Their
        # exceptions carry the request with its key, so that they are not chained.
        except Exception as error:
            raise self._failure(error) from None
        return self._answer(ask, response)

    def _get_ready(self) -> None:
        with _LOADING:
            if self._ready is not None:
                return
            import httpx2
            import pydantic_ai.direct  # pyright: ignore[reportUnusedImport]  # noqa: F401

            ready = _Ready(self._load(), httpx2.create_ssl_context())
            # The libraries put off some of their loading until they are first used.
            ready.build(ready.http(self._deadline))
            price(self._name, 0, 0)
            self._ready = ready

    def _answer(self, ask: Ask, response: ModelResponse) -> Answer:
        # The library makes up a `stop` where there is none; what the endpoint really said is among its details.
        said = (response.provider_details or {}).get("finish_reason")
        if response.finish_reason in (None, "error") or not (said or response.finish_reason == "content_filter"):
            raise ModelError(f"{self._name} sent an answer that is not finished (finish reason: {said or 'none'})")
        text = response.text or ""
        return Answer(text=text, model=self._name, usage=self._usage(ask, text, response), fault=_fault(text, response))

    def _usage(self, ask: Ask, text: str, response: ModelResponse) -> Usage:
        """As the endpoint counted; estimated where it did not, so that a cap binds all the same."""
        input_tokens, output_tokens = response.usage.input_tokens, response.usage.output_tokens
        if not input_tokens and not output_tokens:
            input_tokens = estimate_tokens(ask.messages)
            output_tokens = estimate_tokens([Message(role=Role.assistant, text=text)])
        cached = min(response.usage.cache_read_tokens, input_tokens)
        return Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached,
            usd=price(self._name, input_tokens, output_tokens, cached),
        )

    def _failure(self, error: Exception) -> ModelError:
        from pydantic_ai.exceptions import AgentRunError, ModelConnectionError, ModelHTTPError

        if isinstance(error, ModelHTTPError):
            what, detail = f"{self._name} refused the call with status {error.status_code}", _reason(error.body)
            remedy = self._remedy(error.status_code, error.retry_after)
        elif isinstance(error, ModelConnectionError):
            what, detail = f"{self._name} cannot be reached", str(_root(error))
            remedy = "check the network and the model's address"
        else:
            what = f"{self._name} sent something that is no answer"
            detail = str(error).partition("\n")[0] if isinstance(error, AgentRunError) else type(error).__name__
            remedy = "check the model's address: another service may be listening there"
        detail = " ".join(detail.split())
        if self._secret:
            detail = detail.replace(self._secret, "***")
        return ModelError(f"{what} ({clip(detail, _DETAIL)})" if detail else what, remedy=remedy)

    def _remedy(self, status: int, retry_after: float | None) -> str:
        if status in (401, 403):
            return f"check the key in {self._variable}" if self._variable else "check the key"
        if status == 404:
            return "check the model's name and address"
        if status == 429:
            wait = "" if retry_after is None else f" after {retry_after:g} s"
            return f"the provider's rate or quota is used up: try again{wait}, or use another model"
        if status >= 500:
            return "the provider is down or overloaded: try again later, or use another model"
        return ""


class _Ready(NamedTuple):
    """What is slow to come by and serves every call."""

    build: Build
    ssl: ssl.SSLContext

    def http(self, timeout: float) -> httpx2.AsyncClient:
        import httpx2

        # A model on this machine is reached directly, whatever proxy the environment names.
        here: dict[str, None] = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
        return httpx2.AsyncClient(verify=self.ssl, timeout=timeout, mounts=here)


def _openai(provider: str, model: str, url: str, key: str, *, own: bool) -> Build:
    """`own` says that it is OpenAI's endpoint, not one that speaks its wire."""
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # Servers that are not OpenAI's know `max_tokens` only, and some ignore what they do not know; OpenAI's reasoning
    # models, which may stand behind a gateway, refuse it.
    default = cast("Mapping[str, object]", OpenAICompatibleProvider.model_profile(model) or {})
    modern = provider == "openai" and bool(default.get("openai_supports_reasoning"))
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=modern)

    def build(http: httpx2.AsyncClient) -> Adapter:
        client = AsyncOpenAI(api_key=key, base_url=url, http_client=http, max_retries=0)
        if own:
            return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))
        # What the environment says of an account at OpenAI is not for others.
        client.organization = client.project = None
        return OpenAIChatModel(
            model, provider=OpenAICompatibleProvider(provider, openai_client=client, profile=profile)
        )

    return build


def _anthropic(model: str, url: str, key: str) -> Build:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def build(http: httpx2.AsyncClient) -> Adapter:
        client = AsyncAnthropic(api_key=key, base_url=url, http_client=http, max_retries=0)
        return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))

    return build


async def _request(adapter: Adapter, ask: Ask) -> ModelResponse:
    from pydantic_ai.direct import model_request
    from pydantic_ai.settings import ModelSettings

    settings: ModelSettings = ModelSettings(max_tokens=ask.max_tokens)
    if _takes_temperature(cast("Mapping[str, object]", adapter.profile)):
        settings["temperature"] = ask.temperature
    return await model_request(adapter, _history(ask.messages), model_settings=settings)


def _history(messages: tuple[Message, ...]) -> list[ModelMessage]:
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    history: list[ModelMessage] = []
    for message in messages:
        if message.role is Role.assistant:
            history.append(ModelResponse(parts=[TextPart(content=message.text)]))
            continue
        part = (SystemPromptPart if message.role is Role.system else UserPromptPart)(content=message.text)
        last = history[-1] if history else None
        if isinstance(last, ModelRequest):
            last.parts = [*last.parts, part]
        else:
            history.append(ModelRequest(parts=[part]))
    return history


def _takes_temperature(profile: Mapping[str, object]) -> bool:
    """Models that reason refuse it. The library drops it for them, but with a warning at each call."""
    if profile.get("anthropic_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = cast("frozenset[str] | None", profile.get("openai_reasoning_efforts"))
    can_rest = bool(profile.get("openai_supports_reasoning_effort_none")) if efforts is None else "none" in efforts
    return can_rest and not profile.get("thinking_enabled_by_default")


def _fault(text: str, response: ModelResponse) -> Fault | None:
    if response.finish_reason == "length":
        return Fault.truncated
    if response.finish_reason == "content_filter":
        return Fault.refused
    return None if text.strip() else Fault.empty


def _root(error: BaseException) -> BaseException:
    """The first cause that has something to say."""
    while error.__cause__ is not None and str(error.__cause__):
        error = error.__cause__
    return error


def _reason(body: object) -> str:
    """The endpoint's own words, wherever in the body of its refusal they stand."""
    for key in ("error", "message"):
        if isinstance(body, dict):
            body = cast("dict[str, object]", body).get(key, cast("object", body))
    return "" if body is None else str(body)
