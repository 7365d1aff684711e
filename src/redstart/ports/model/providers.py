"""Models behind the APIs of OpenAI (chat completions) and Anthropic (messages).

Only this file imports `pydantic_ai`. It and the SDKs take seconds to load, so they are loaded at the first question.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import math
import ssl
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, ToolCall, Usage
from redstart.core.errors import ModelBusy, ModelError, ModelGarbled, ModelRefused, ModelTimeout, ModelUnreachable
from redstart.core.frozen import clip
from redstart.ports.model import endpoint_errors
from redstart.ports.model.endpoints import ENDPOINTS, ModelAddress, resolve_address
from redstart.ports.model.http import create_client, create_ssl_context
from redstart.ports.model.port import Model, Profile
from redstart.ports.model.prices import estimate_input, estimate_max_usage, estimate_tokens, price
from redstart.ports.model.text_tools import describe_tools

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse
    from pydantic_ai.models import Model as Adapter
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

__all__ = ["ENDPOINTS", "Provider", "connect", "create_provider"]

Build = Callable[["httpx2.AsyncClient"], "Adapter"]
"""A function that creates the library's model for one call, using the HTTP client of that call."""

_DETAIL = 200
"""The most characters of an endpoint's error detail that are shown."""

_LOADING = threading.Lock()
"""Serializes imports: two threads that load libraries with circular imports at once may see a half-loaded module."""

DEFAULT_PROFILE = Profile(tools=True, shapes=True)
"""The profile of a model without settings: it is assumed to support what the library knows about."""

_NOT_SENT = "not-sent"
"""The key passed to an SDK if there is none, so that it reads none from the environment. The header is left out."""


def connect(
    name: str,
    *,
    base_url: str | None,
    api_key: str | None,
    deadline: float,
    variable: str = "",
    profile: Profile = DEFAULT_PROFILE,
) -> Model:
    """Create the model named `provider:model`. See `create_provider`. Raises as `address` does."""
    model_address = resolve_address(name, base_url=base_url, api_key=api_key, variable=variable)
    return create_provider(model_address, deadline=deadline, profile=profile)


def create_provider(model_address: ModelAddress, *, deadline: float, profile: Profile = DEFAULT_PROFILE) -> Model:
    """Create the model at this address. Nothing is sent yet, and no environment variable is read.

    `deadline` is in seconds and limits each call as a whole, except for loading the SDK at the first call. The profile
    says whether tools are sent through the API or described in text, whether the model supports a JSON schema, what is
    marked for the provider's cache (only Anthropic's API has such marks) and what the model costs.
    """
    load = partial(_load_anthropic if model_address.provider == "anthropic" else _load_openai, model_address)
    return Provider(model_address, load, deadline=deadline, profile=profile)


class Provider:
    """One model at one endpoint. See `connect`.

    Each call has its own HTTP client, which is closed when the call ends. So the model belongs to no event loop, leaves
    nothing open and never uses a stale connection. Nothing is retried here.
    """

    def __init__(
        self, model_address: ModelAddress, load: Callable[[], Build], *, deadline: float, profile: Profile
    ) -> None:
        self._name = model_address.name
        self._place = f"{model_address.name} at {model_address.host}"
        self._address = model_address
        self._load = load
        self._deadline = deadline
        self._profile = profile
        self._caching = profile.caching and model_address.provider == "anthropic"
        self._ready: _Ready | None = None

    async def ask(self, ask: Ask) -> Answer:
        if not self._profile.tools:
            ask = describe_tools(ask)
        if self._ready is None:
            # In a thread, so that the display keeps updating, and before the timeout starts.
            await asyncio.to_thread(self._get_ready)
        ready = cast("_Ready", self._ready)
        try:
            async with asyncio.timeout(self._deadline), ready.open_client(self._deadline) as http:
                response = await self._request(ready.build(http), ask)
        except TimeoutError:
            raise ModelTimeout(
                f"{self._place} did not answer within {self._deadline:g} s",
                remedy="try again, or raise models.deadline",
                usage=self._get_max_usage(ask),
            ) from None
        # Every exception that the SDKs raise for an invalid reply, even an AssertionError, is the endpoint's failure.
        # Their exceptions contain the request with its key, so they are not chained.
        except Exception as error:
            raise self._make_error(ask, error) from None
        return self._answer(ask, response)

    async def _request(self, adapter: Adapter, ask: Ask) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.settings import ModelSettings

        profile = cast("Mapping[str, object]", adapter.profile)
        settings: ModelSettings = ModelSettings(max_tokens=ask.max_tokens)
        if _can_set_temperature(profile):
            settings["temperature"] = ask.temperature
        if self._caching:
            # Marks on the blocks themselves: servers with this API either support or ignore them.
            marks = {f"anthropic_cache_{part}": True for part in ("instructions", "tool_definitions", "messages")}
            settings = cast("ModelSettings", {**settings, **marks})
        if not self._address.key:
            settings["extra_headers"] = _without_key(self._address.provider)
        return await model_request(
            adapter,
            _build_history(ask.messages),
            model_settings=settings,
            model_request_parameters=_build_parameters(ask, with_schema=self._can_use_schema(profile, ask)),
        )

    def _can_use_schema(self, profile: Mapping[str, object], ask: Ask) -> bool:
        """Return whether to send the JSON schema. Without it the prompt describes the shape.

        Servers other than the provider's own refuse a schema together with tools.
        """
        is_supported = self._profile.shapes and bool(profile.get("supports_json_schema_output"))
        return is_supported and ask.shape is not None and (self._address.is_official or not ask.tools)

    def _get_ready(self) -> None:
        with _LOADING:
            if self._ready is not None:
                return
            import pydantic_ai.direct  # pyright: ignore[reportUnusedImport]  # noqa: F401

            ready = _Ready(self._load(), create_ssl_context())
            # The libraries load some of their modules only when they are first used.
            ready.build(ready.open_client(self._deadline))
            price(self._name, 0, 0)
            self._ready = ready

    def _answer(self, ask: Ask, response: ModelResponse) -> Answer:
        text, calls = response.text or "", _extract_calls(response)
        usage = self._get_usage(ask, text, calls, response)
        # The library invents a `stop` if there is none; the endpoint's real reason is in the provider details.
        finish_reason = (response.provider_details or {}).get("finish_reason")
        if response.finish_reason in (None, "error") or not (
            finish_reason or response.finish_reason == "content_filter"
        ):
            reason = f"finish reason: {finish_reason or 'none'}"
            raise ModelGarbled(f"{self._place} sent an unfinished answer ({reason})", usage=usage)
        fault = _detect_fault(text, response)
        if fault is AnswerFault.empty and calls:
            fault = None
        return Answer(text=text, model=self._name, calls=calls, usage=usage, fault=fault)

    def _get_usage(self, ask: Ask, text: str, calls: tuple[ToolCall, ...], response: ModelResponse) -> Usage:
        """Return the usage that the endpoint counted, or an estimate if it did not, so that limits still apply."""
        input_tokens, output_tokens = response.usage.input_tokens, response.usage.output_tokens
        if not input_tokens and not output_tokens:
            input_tokens = estimate_input(ask)
            output_tokens = estimate_tokens([Message(role=Role.assistant, text=text, calls=calls)])
        cached = min(response.usage.cache_read_tokens, input_tokens)
        written = min(response.usage.cache_write_tokens, input_tokens - cached)
        return Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached,
            usd=price(self._name, input_tokens, output_tokens, cached, written, rates=self._profile.rates),
        )

    def _get_max_usage(self, ask: Ask) -> Usage:
        """Return the most that a call without an answer may have used."""
        return estimate_max_usage(self._name, ask, caching=self._caching, rates=self._profile.rates)

    def _make_error(self, ask: Ask, error: Exception) -> ModelError:
        from pydantic_ai.exceptions import AgentRunError, ModelConnectionError, ModelHTTPError

        kind, usage, retry_after = ModelGarbled, None, None
        if isinstance(error, ModelHTTPError):
            kind = ModelBusy if endpoint_errors.is_temporary(error.status_code) else ModelRefused
            summary = f"{self._place} refused the call with status {error.status_code}"
            detail = endpoint_errors.extract_reason(error.body)
            retry_after = _validate_wait(error.retry_after)
            remedy = endpoint_errors.suggest_remedy(error.status_code, self._address.variable, retry_after)
        elif isinstance(error, ModelConnectionError):
            kind = ModelUnreachable
            usage = None if error.phase in ("pool", "connect") else self._get_max_usage(ask)
            summary, detail = f"{self._place} cannot be reached", str(_find_root_cause(error))
            remedy = "check the network and the address: redstart doctor"
        else:
            usage = self._get_max_usage(ask)
            summary = f"{self._place} sent an invalid response"
            detail = str(error).partition("\n")[0] if isinstance(error, AgentRunError) else type(error).__name__
            remedy = "check the address: another service may be listening there"
        detail = " ".join(detail.split())
        if self._address.key:
            detail = detail.replace(self._address.key, "***")
        message = f"{summary} ({clip(detail, _DETAIL)})" if detail else summary
        return kind(message, remedy=remedy, retry_after=retry_after, usage=usage)


class _Ready(NamedTuple):
    """Objects that are slow to create and serve every call."""

    build: Build
    ssl: ssl.SSLContext

    def open_client(self, timeout: float) -> httpx2.AsyncClient:
        return create_client(self.ssl, timeout)


def _load_openai(model_address: ModelAddress) -> Build:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider, model, url, key = (
        model_address.provider,
        model_address.model,
        model_address.url,
        model_address.key or _NOT_SENT,
    )
    # Servers other than OpenAI's support only `max_tokens`, and some ignore unknown parameters. OpenAI's reasoning
    # models, which may be behind a gateway, refuse it.
    default = cast("Mapping[str, object]", OpenAICompatibleProvider.model_profile(model) or {})
    modern = provider == "openai" and bool(default.get("openai_supports_reasoning"))
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=modern)

    def build(http: httpx2.AsyncClient) -> Adapter:
        client = AsyncOpenAI(api_key=key, base_url=url, http_client=http, max_retries=0)
        if model_address.is_official and provider == "openai":
            return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))
        # The environment's OpenAI account must not be sent to other providers.
        client.organization = client.project = None
        return OpenAIChatModel(
            model, provider=OpenAICompatibleProvider(provider, openai_client=client, profile=profile)
        )

    return build


def _load_anthropic(model_address: ModelAddress) -> Build:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key, url = model_address.key or _NOT_SENT, model_address.url

    def build(http: httpx2.AsyncClient) -> Adapter:
        client = AsyncAnthropic(api_key=key, base_url=url, http_client=http, max_retries=0)
        return AnthropicModel(model_address.model, provider=AnthropicProvider(anthropic_client=client))

    return build


def _without_key(provider: str) -> dict[str, str]:
    """Return the headers that contain a key, each marked so that the provider's SDK omits it."""
    if provider == "anthropic":
        from anthropic import Omit

        return cast("dict[str, str]", {"Authorization": Omit(), "X-Api-Key": Omit()})
    from openai import omit

    return cast("dict[str, str]", {"Authorization": omit})


def _build_parameters(ask: Ask, *, with_schema: bool) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in ask.tools
    ]
    if not with_schema:
        return ModelRequestParameters(function_tools=tools)
    shape = OutputObjectDefinition(json_schema=ask.shape or {}, name=ask.question)
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=shape)


def _build_history(messages: tuple[Message, ...]) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart

    history: list[ModelMessage] = []
    tool_names: dict[str, str] = {}
    for message in messages:
        if message.role is Role.assistant:
            calls = [ToolCallPart(call.name, call.arguments, call.id) for call in message.calls]
            tool_names |= {call.id: call.name for call in message.calls}
            text_parts = [TextPart(content=message.text)] if message.text or not calls else []
            history.append(ModelResponse(parts=[*text_parts, *calls]))
            continue
        part = _build_part(message, tool_names)
        last = history[-1] if history else None
        if isinstance(last, ModelRequest):
            last.parts = [*last.parts, part]
        else:
            history.append(ModelRequest(parts=[part]))
    return history


def _build_part(message: Message, tool_names: Mapping[str, str]) -> ModelRequestPart:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if message.role is Role.tool:
        return ToolReturnPart(tool_names.get(message.reply_to, "unknown"), message.text, message.reply_to)
    return (SystemPromptPart if message.role is Role.system else UserPromptPart)(content=message.text)


def _extract_calls(response: ModelResponse) -> tuple[ToolCall, ...]:
    """Return the tool calls of a response. Arguments that are not JSON stay as the model wrote them."""
    return tuple(
        ToolCall(
            id=call.tool_call_id,
            name=call.tool_name,
            arguments=call.args if isinstance(call.args, str) else call.args_as_json_str(),
        )
        for call in response.tool_calls
    )


def _can_set_temperature(profile: Mapping[str, object]) -> bool:
    """Return whether the model accepts a temperature. Reasoning models refuse it.

    The library drops it for them, but with a warning at each call.
    """
    if profile.get("anthropic_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = cast("frozenset[str] | None", profile.get("openai_reasoning_efforts"))
    can_rest = bool(profile.get("openai_supports_reasoning_effort_none")) if efforts is None else "none" in efforts
    return can_rest and not profile.get("thinking_enabled_by_default")


def _detect_fault(text: str, response: ModelResponse) -> AnswerFault | None:
    if response.finish_reason == "length":
        return AnswerFault.truncated
    if response.finish_reason == "content_filter":
        return AnswerFault.refused
    return None if text.strip() else AnswerFault.empty


def _validate_wait(seconds: float | None) -> float | None:
    """Return the wait that an endpoint asks for, or None if it is not a valid time."""
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None


def _find_root_cause(error: BaseException) -> BaseException:
    """Return the deepest cause in the chain that has a message."""
    while error.__cause__ is not None and str(error.__cause__):
        error = error.__cause__
    return error
