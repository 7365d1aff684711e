"""Embeddings of texts by a model behind an `/embeddings` endpoint of the OpenAI API.

OpenAI, Ollama, llama.cpp, vLLM, LiteLLM's proxy and OpenRouter provide such an endpoint.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import NamedTuple

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from redstart.core.chat import Message, Role, Usage
from redstart.core.errors import (
    ConfigError,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)
from redstart.core.frozen import clip
from redstart.ports.model import endpoint_errors
from redstart.ports.model.budget import CallUsage, reserve_usage
from redstart.ports.model.endpoints import ModelAddress
from redstart.ports.model.http import (
    AnswerTooLong,
    BrokenConnection,
    HttpResponse,
    create_client,
    create_ssl_context,
    post,
)
from redstart.ports.model.port import Ledger, Rates
from redstart.ports.model.prices import estimate_tokens, price
from redstart.ports.model.routes import CircuitBreaker
from redstart.ports.model.secret_mask import mask

SIMILARITY_THRESHOLD = 0.7
"""The threshold between related and unrelated failures; see docs/decisions/0027-embedders.md."""
DEADLINE = 30.0
"""The default timeout of a call in seconds: a run waits for it, but can do without the result."""
COOLDOWN_SECONDS = 300.0
"""The seconds for which an endpoint that did not answer is not asked again: otherwise every plan would wait for it."""
BATCH = 64
"""The most texts per call. Self-hosted servers are slow, and some accept no more."""
LONGEST_TEXT = 1500
"""The most bytes of a text: about 512 tokens, the limit of many models and of llama.cpp by default."""
MAX_DIMENSIONS = 16_000
"""The most numbers of a vector: the limit of a pgvector column."""
_LONGEST_ANSWER = 64 << 20
_DETAIL = 200


class EmbeddingOptions(NamedTuple):
    """How the model is asked, and how its vectors are compared."""

    deadline: float = DEADLINE
    """The timeout of one call in seconds."""
    similarity_threshold: float = SIMILARITY_THRESHOLD
    dimensions: int | None = None
    """The vector size to request, if the model supports smaller ones; None means its default."""
    rates: Rates | None = None
    """The model's prices; None means those of the price table."""
    secrets: Mapping[str, str] = {}
    """Secrets by value, as `find_secrets` returns them; known shapes of keys are masked as well."""


class _Kind(NamedTuple):
    """The model that produced the vectors, as far as it is known."""

    model: str
    """The name that the endpoint uses."""
    dimension: int


class _Place(BaseModel):
    embedding: list[FiniteFloat] = Field(min_length=1, max_length=MAX_DIMENSIONS)
    index: int | None = None


class _Counted(BaseModel):
    prompt_tokens: int | None = Field(default=None, ge=0)
    total_tokens: int | None = Field(default=None, ge=0)


class _Answer(BaseModel):
    data: list[_Place]
    model: str | None = None
    usage: _Counted | None = None


class ApiEmbedder:
    """One embedding model at one endpoint. `reach` returns the address; its `ConfigError` is raised by `embed`.

    Texts are masked and truncated before they are sent, and vectors are normalized to length 1. The name contains the
    configured name, the vector size and, if the endpoint or the model it reports is not the provider's own, a digest of
    address and model: another model, at any address, has another name. All but the configured part is known after the
    first answer. From then on an answer of another kind is an error; `under` starts afresh. Nothing is retried here: an
    endpoint that did not answer is not asked for a while, nor by the embedders that `under` created.
    """

    remote = True

    def __init__(
        self,
        get_address: Callable[[], ModelAddress],
        name: str,
        manner: EmbeddingOptions,
        ledger: Ledger | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._get_address, self._configured_name, self._manner, self._ledger = get_address, name, manner, ledger
        self._breaker = breaker or CircuitBreaker(1, COOLDOWN_SECONDS)
        self._kind: _Kind | None = None
        self._suffix = ""
        self._trust: ssl.SSLContext | None = None
        self._place = name
        """The name in error messages; it includes the host from the first call on."""

    def with_meter(self, meter: Ledger) -> ApiEmbedder:
        """Return the same embedder, with calls reserved and settled by this ledger."""
        return ApiEmbedder(self._get_address, self._configured_name, self._manner, meter, self._breaker)

    @property
    def name(self) -> str:
        return f"{self._configured_name}{self._suffix}"

    @property
    def dimension(self) -> int:
        """The vector size. Until the first answer, the requested size, or 0 if none is requested."""
        return self._kind.dimension if self._kind else self._manner.dimensions or 0

    @property
    def near(self) -> float:
        return self._manner.similarity_threshold

    @property
    def near_elsewhere(self) -> float:
        """The same as `near`, which was measured on failures of different packages."""
        return self.near

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed the texts; see the port. Raises `ModelError`, `ConfigError` and, before a call, `BudgetExceeded`.

        If all texts are blank, nothing is sent, and the vectors may be empty if the vector size is still unknown.
        """
        model_address = self._get_address()
        self._place = f"{self._configured_name} at {model_address.host}"
        if self._breaker.wait(monotonic()):
            raise ModelBusy(f"{self._place} failed a while ago and is not asked for now")
        masked = [clip(mask(text, self._manner.secrets), LONGEST_TEXT) if text.strip() else "" for text in texts]
        nonblank = [text for text in masked if text]
        places: list[list[float]] = []
        for start in range(0, len(nonblank), BATCH):
            places += await self._embed_batch(model_address, nonblank[start : start + BATCH])
        vectors = iter(places)
        return [next(vectors) if text else [0.0] * self.dimension for text in masked]

    async def _embed_batch(self, model_address: ModelAddress, texts: list[str]) -> list[list[float]]:
        with self._breaker.wrap_call():
            try:
                vectors = await self._call(model_address, texts)
            except (ModelTimeout, ModelUnreachable, ModelBusy):
                self._breaker.record_failure(monotonic())
                raise
            self._breaker.record_success()
            return vectors

    async def _call(self, model_address: ModelAddress, texts: list[str]) -> list[list[float]]:
        if self._trust is None:
            # In a thread, so that the display keeps updating, and before the timeout starts.
            self._trust = await asyncio.to_thread(self._load)
        max_usage = self._make_usage(estimate_tokens(Message(role=Role.user, text=text) for text in texts))
        with self._reserve(max_usage) as used:
            response = await self._send(model_address, texts, max_usage, self._trust)
            if response.status != 200:
                raise self._make_refusal(model_address, response)
            try:
                answer = _Answer.model_validate_json(response.body)
            except ValidationError as error:
                first_error = error.errors(include_url=False, include_input=False, include_context=False)[0]
                place = ".".join(str(part) for part in first_error["loc"])
                raise self._make_garbled_error(
                    f"{place}: {first_error['msg']}" if place else first_error["msg"], max_usage
                ) from None
            token_count = answer.usage and (answer.usage.prompt_tokens or answer.usage.total_tokens)
            used.usage = self._make_usage(token_count) if token_count else max_usage
            return self._read(model_address, answer, len(texts), used.usage)

    def _load(self) -> ssl.SSLContext:
        price(self._configured_name, 0, 0)
        return create_ssl_context()

    def _reserve(self, max_usage: Usage) -> AbstractContextManager[CallUsage]:
        return reserve_usage(self._ledger, max_usage) if self._ledger else nullcontext(CallUsage(max_usage))

    def _make_usage(self, tokens: int) -> Usage:
        usd = price(self._configured_name, tokens, 0, rates=self._manner.rates)
        return Usage(input_tokens=tokens, output_tokens=0, usd=usd)

    async def _send(
        self, model_address: ModelAddress, texts: list[str], max_usage: Usage, trust: ssl.SSLContext
    ) -> HttpResponse:
        deadline, headers = (
            self._manner.deadline,
            {"Authorization": f"Bearer {model_address.key}"} if model_address.key else {},
        )
        document: dict[str, object] = {"model": model_address.model, "input": texts, "encoding_format": "float"}
        if self._manner.dimensions:
            document["dimensions"] = self._manner.dimensions
        try:
            async with asyncio.timeout(deadline), create_client(trust, deadline) as http:
                url = f"{model_address.url.rstrip('/')}/embeddings"
                return await post(http, url, document, headers=headers, longest=_LONGEST_ANSWER)
        except TimeoutError:
            message = f"{self._place} gave no embeddings within {deadline:g} s"
            raise ModelTimeout(message, remedy="raise its deadline under models.options", usage=max_usage) from None
        except BrokenConnection as broken:
            message = self._format_message("cannot be reached", str(broken), model_address)
            remedy = "check the network and the address: redstart doctor"
            raise ModelUnreachable(message, remedy=remedy, usage=max_usage if broken.was_sent else None) from None
        except AnswerTooLong:
            raise self._make_garbled_error(f"more than {_LONGEST_ANSWER >> 20} MB", max_usage) from None
        # Any exception that the client raises for an invalid address or answer is the endpoint's failure. It contains
        # the request with its key, so it is not chained.
        except Exception as error:
            raise self._make_garbled_error(type(error).__name__, max_usage) from None

    def _make_refusal(self, model_address: ModelAddress, response: HttpResponse) -> ModelError:
        try:
            reason = endpoint_errors.extract_reason(json.loads(response.body))
        except ValueError:
            reason = ""
        kind = ModelBusy if endpoint_errors.is_temporary(response.status) else ModelRefused
        message = self._format_message(f"refused the call with status {response.status}", reason, model_address)
        return kind(message, remedy=endpoint_errors.suggest_remedy(response.status, model_address.variable))

    def _read(
        self, model_address: ModelAddress, answer: _Answer, expected_count: int, used: Usage
    ) -> list[list[float]]:
        if len(answer.data) != expected_count:
            raise self._make_garbled_error(f"{len(answer.data)} embeddings for {expected_count} texts", used)
        if any(item.index is not None for item in answer.data):
            ordered = {item.index: item for item in answer.data}
            if set(ordered) != set(range(expected_count)):
                raise self._make_garbled_error("its embeddings are not numbered like the texts", used)
            answer.data = [ordered[number] for number in range(expected_count)]
        kind = _Kind(answer.model or model_address.model, len(answer.data[0].embedding))
        if dimensions := self._manner.dimensions:
            kind = kind._replace(dimension=dimensions)
        for item in answer.data:
            if len(item.embedding) != kind.dimension:
                raise self._make_garbled_error(f"{len(item.embedding)} numbers instead of {kind.dimension}", used)
        if self._kind not in (None, kind):
            raise self._make_garbled_error(
                "its embeddings come from another model, or have another size, than before", used
            )
        places = [self._normalize(item.embedding, used) for item in answer.data]
        self._kind, self._suffix = kind, _make_suffix(model_address, kind)
        return places

    def _normalize(self, numbers: list[float], used: Usage) -> list[float]:
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:
            raise self._make_garbled_error("an embedding of zeros", used)
        return [number / length for number in numbers]

    def _make_garbled_error(self, reason: str, used: Usage) -> ModelGarbled:
        message = f"{self._place} sent an invalid response ({clip(reason, _DETAIL)})"
        return ModelGarbled(message, remedy="check the model's name and address, and memory.dimensions", usage=used)

    def _format_message(self, problem: str, detail: str, model_address: ModelAddress) -> str:
        detail = " ".join(detail.split())
        if model_address.key:
            detail = detail.replace(model_address.key, "***")
        detail = clip(mask(detail, self._manner.secrets), _DETAIL)
        return f"{self._place} {problem} ({detail})" if detail else f"{self._place} {problem}"


def _make_suffix(model_address: ModelAddress, kind: _Kind) -> str:
    is_own = model_address.is_official and kind.model == model_address.model
    digest = "" if is_own else hashlib.sha256(f"{model_address.url}\x1f{kind.model}".encode()).hexdigest()[:8]
    return f"/{kind.dimension}~{digest}" if digest else f"/{kind.dimension}"


def refuse_unfit(model_address: ModelAddress) -> ModelAddress:
    """Raise `ConfigError` for a provider without an embeddings endpoint."""
    if model_address.provider == "anthropic":
        remedy = "choose a model of another provider in memory.embedder, or leave it empty for the built-in one"
        raise ConfigError("Anthropic has no embedding models", remedy=remedy)
    return model_address
