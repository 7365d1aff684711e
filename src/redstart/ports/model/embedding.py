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
from redstart.core.noun import clip
from redstart.ports.model import refusals
from redstart.ports.model.budget import CallUsage, held
from redstart.ports.model.endpoints import ModelAddress
from redstart.ports.model.http import AnswerTooLong, BrokenConnection, HttpResponse, client, post, trusted
from redstart.ports.model.lanes import CircuitBreaker
from redstart.ports.model.mask import mask
from redstart.ports.model.port import Ledger, Rates
from redstart.ports.model.prices import estimate_tokens, price

NEAR = 0.7
"""The threshold between related and unrelated failures; see docs/decisions/0027-embedders.md."""
DEADLINE = 30.0
"""The default timeout of a call in seconds: a run waits for it, but can do without the result."""
REST = 300.0
"""The seconds for which an endpoint that did not answer is not asked again: otherwise every plan would wait for it."""
BATCH = 64
"""The most texts per call. Self-hosted servers are slow, and some accept no more."""
LONGEST_TEXT = 1500
"""The most bytes of a text: about 512 tokens, the limit of many models and of llama.cpp by default."""
LARGEST = 16_000
"""The most numbers of a vector: the limit of a pgvector column."""
_LONGEST_ANSWER = 64 << 20
_DETAIL = 200


class EmbeddingOptions(NamedTuple):
    """How the model is asked, and how its vectors are compared."""

    deadline: float = DEADLINE
    """The timeout of one call in seconds."""
    near: float = NEAR
    dimensions: int | None = None
    """The vector size to request, if the model supports smaller ones; None means its default."""
    rates: Rates | None = None
    """The model's prices; None means those of the price table."""
    secrets: Mapping[str, str] = {}
    """Secrets by value, as `secrets_of` returns them; known shapes of keys are masked as well."""


class _Kind(NamedTuple):
    """The model that produced the vectors, as far as it is known."""

    model: str
    """The name that the endpoint uses."""
    dimension: int


class _Place(BaseModel):
    embedding: list[FiniteFloat] = Field(min_length=1, max_length=LARGEST)
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
        reach: Callable[[], ModelAddress],
        name: str,
        manner: EmbeddingOptions,
        ledger: Ledger | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._reach, self._configured, self._manner, self._ledger = reach, name, manner, ledger
        self._breaker = breaker or CircuitBreaker(1, REST)
        self._kind: _Kind | None = None
        self._suffix = ""
        self._trust: ssl.SSLContext | None = None
        self._place = name
        """The name in error messages; it includes the host from the first call on."""

    def under(self, meter: Ledger) -> ApiEmbedder:
        """Return the same embedder, with calls reserved and settled by this ledger."""
        return ApiEmbedder(self._reach, self._configured, self._manner, meter, self._breaker)

    @property
    def name(self) -> str:
        return f"{self._configured}{self._suffix}"

    @property
    def dimension(self) -> int:
        """The vector size. Until the first answer, the requested size, or 0 if none is requested."""
        return self._kind.dimension if self._kind else self._manner.dimensions or 0

    @property
    def near(self) -> float:
        return self._manner.near

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed the texts; see the port. Raises `ModelError`, `ConfigError` and, before a call, `BudgetExceeded`.

        If all texts are blank, nothing is sent, and the vectors may be empty if the vector size is still unknown.
        """
        where = self._reach()
        self._place = f"{self._configured} at {where.host}"
        if self._breaker.wait(monotonic()):
            raise ModelBusy(f"{self._place} failed a while ago and is not asked for now")
        said = [clip(mask(text, self._manner.secrets), LONGEST_TEXT) if text.strip() else "" for text in texts]
        sent = [text for text in said if text]
        places: list[list[float]] = []
        for start in range(0, len(sent), BATCH):
            places += await self._asked(where, sent[start : start + BATCH])
        given = iter(places)
        return [next(given) if text else [0.0] * self.dimension for text in said]

    async def _asked(self, where: ModelAddress, texts: list[str]) -> list[list[float]]:
        with self._breaker.trying():
            try:
                found = await self._call(where, texts)
            except (ModelTimeout, ModelUnreachable, ModelBusy):
                self._breaker.failed(monotonic())
                raise
            self._breaker.answered()
            return found

    async def _call(self, where: ModelAddress, texts: list[str]) -> list[list[float]]:
        if self._trust is None:
            # In a thread, so that the display keeps updating, and before the timeout starts.
            self._trust = await asyncio.to_thread(self._load)
        most = self._used(estimate_tokens(Message(role=Role.user, text=text) for text in texts))
        with self._held(most) as used:
            got = await self._sent(where, texts, most, self._trust)
            if got.status != 200:
                raise self._refused(where, got)
            try:
                answer = _Answer.model_validate_json(got.body)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False, include_context=False)[0]
                place = ".".join(str(part) for part in first["loc"])
                raise self._garbled(f"{place}: {first['msg']}" if place else first["msg"], most) from None
            counted = answer.usage and (answer.usage.prompt_tokens or answer.usage.total_tokens)
            used.usage = self._used(counted) if counted else most
            return self._read(where, answer, len(texts), used.usage)

    def _load(self) -> ssl.SSLContext:
        price(self._configured, 0, 0)
        return trusted()

    def _held(self, most: Usage) -> AbstractContextManager[CallUsage]:
        return held(self._ledger, most) if self._ledger else nullcontext(CallUsage(most))

    def _used(self, tokens: int) -> Usage:
        usd = price(self._configured, tokens, 0, rates=self._manner.rates)
        return Usage(input_tokens=tokens, output_tokens=0, usd=usd)

    async def _sent(self, where: ModelAddress, texts: list[str], most: Usage, trust: ssl.SSLContext) -> HttpResponse:
        deadline, headers = self._manner.deadline, {"Authorization": f"Bearer {where.key}"} if where.key else {}
        document: dict[str, object] = {"model": where.model, "input": texts, "encoding_format": "float"}
        if self._manner.dimensions:
            document["dimensions"] = self._manner.dimensions
        try:
            async with asyncio.timeout(deadline), client(trust, deadline) as http:
                url = f"{where.url.rstrip('/')}/embeddings"
                return await post(http, url, document, headers=headers, longest=_LONGEST_ANSWER)
        except TimeoutError:
            what = f"{self._place} gave no embeddings within {deadline:g} s"
            raise ModelTimeout(what, remedy="raise its deadline under models.options", usage=most) from None
        except BrokenConnection as broken:
            what = self._told("cannot be reached", str(broken), where)
            remedy = "check the network and the address: redstart doctor"
            raise ModelUnreachable(what, remedy=remedy, usage=most if broken.sent else None) from None
        except AnswerTooLong:
            raise self._garbled(f"more than {_LONGEST_ANSWER >> 20} MB", most) from None
        # Any exception that the client raises for an invalid address or answer is the endpoint's failure. It contains
        # the request with its key, so it is not chained.
        except Exception as error:
            raise self._garbled(type(error).__name__, most) from None

    def _refused(self, where: ModelAddress, got: HttpResponse) -> ModelError:
        try:
            said = refusals.reason(json.loads(got.body))
        except ValueError:
            said = ""
        kind = ModelBusy if refusals.may_pass(got.status) else ModelRefused
        what = self._told(f"refused the call with status {got.status}", said, where)
        return kind(what, remedy=refusals.remedy(got.status, where.variable))

    def _read(self, where: ModelAddress, answer: _Answer, wanted: int, used: Usage) -> list[list[float]]:
        if len(answer.data) != wanted:
            raise self._garbled(f"{len(answer.data)} embeddings for {wanted} texts", used)
        if any(item.index is not None for item in answer.data):
            ordered = {item.index: item for item in answer.data}
            if set(ordered) != set(range(wanted)):
                raise self._garbled("its embeddings are not numbered like the texts", used)
            answer.data = [ordered[number] for number in range(wanted)]
        kind = _Kind(answer.model or where.model, len(answer.data[0].embedding))
        if asked := self._manner.dimensions:
            kind = kind._replace(dimension=asked)
        for item in answer.data:
            if len(item.embedding) != kind.dimension:
                raise self._garbled(f"{len(item.embedding)} numbers instead of {kind.dimension}", used)
        if self._kind not in (None, kind):
            raise self._garbled("its embeddings come from another model, or have another size, than before", used)
        places = [self._normal(item.embedding, used) for item in answer.data]
        self._kind, self._suffix = kind, _suffix(where, kind)
        return places

    def _normal(self, numbers: list[float], used: Usage) -> list[float]:
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:
            raise self._garbled("an embedding without a direction", used)
        return [number / length for number in numbers]

    def _garbled(self, why: str, used: Usage) -> ModelGarbled:
        what = f"{self._place} sent something that is not an answer ({clip(why, _DETAIL)})"
        return ModelGarbled(what, remedy="check the model's name and address, and memory.dimensions", usage=used)

    def _told(self, what: str, detail: str, where: ModelAddress) -> str:
        detail = " ".join(detail.split())
        if where.key:
            detail = detail.replace(where.key, "***")
        detail = clip(mask(detail, self._manner.secrets), _DETAIL)
        return f"{self._place} {what} ({detail})" if detail else f"{self._place} {what}"


def _suffix(where: ModelAddress, kind: _Kind) -> str:
    own = where.own and kind.model == where.model
    told = "" if own else hashlib.sha256(f"{where.url}\x1f{kind.model}".encode()).hexdigest()[:8]
    return f"/{kind.dimension}~{told}" if told else f"/{kind.dimension}"


def refuse_unfit(where: ModelAddress) -> ModelAddress:
    """Raise `ConfigError` for a provider without an embeddings endpoint."""
    if where.provider == "anthropic":
        remedy = "name one of another provider in memory.embedder, or leave it empty for the built-in one"
        raise ConfigError("Anthropic has no embedding models", remedy=remedy)
    return where
