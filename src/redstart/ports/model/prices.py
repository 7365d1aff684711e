"""Prices of calls in dollars, from a table that ships with its library: nothing is fetched."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from redstart.core.chat import Answer, Ask, Message, Usage
from redstart.core.frozen import FrozenValue
from redstart.ports.model.port import Rates

_LOCAL = frozenset({"ollama"})
"""Providers whose models run on the user's own machine and are free."""

_CHARS_PER_TOKEN = 3
"""A cautious estimate: code has between 3 and 4 characters per token."""
_TOKENS_PER_MESSAGE = 20
"""A cautious estimate of what the API's format adds around a message."""


def price(
    model: str,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    written_tokens: int = 0,
    *,
    rates: Rates | None = None,
) -> float | None:
    """Calculate the price of a call to `model` (`provider:name`), using `rates` if given.

    `cached_tokens` were read from the provider's cache, `written_tokens` were written to it. Both are part of
    `input_tokens`.

    Returns None if the price is unknown, and 0.0 for a model on the user's own machine.
    """
    cached = min(cached_tokens, input_tokens)
    written = min(written_tokens, input_tokens - cached)
    if rates is not None:
        return _apply_rates(rates, input_tokens - cached - written, cached, written, output_tokens)
    provider, _, name = model.partition(":")
    if provider in _LOCAL:
        return 0.0
    # Loading the table takes most of a second, so it is imported only when a price is needed.
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )
    try:
        return float(calc_price(usage, name, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def _apply_rates(rates: Rates, uncached: int, cached: int, written: int, output_tokens: int) -> float:
    read = rates.input if rates.cached is None else rates.cached
    write = rates.input if rates.written is None else rates.written
    return (uncached * rates.input + cached * read + written * write + output_tokens * rates.output) / 1_000_000


def estimate_max_usage(model: str, ask: Ask, *, caching: bool = False, rates: Rates | None = None) -> Usage:
    """Estimate, before the call, the most that this question can use of `model`.

    With `caching`, the whole question may have to be written to the provider's cache, which costs more than sending it.
    """
    input_tokens = estimate_input(ask)
    usd = price(model, input_tokens, ask.max_tokens, 0, input_tokens if caching else 0, rates=rates)
    return Usage(input_tokens=input_tokens, output_tokens=ask.max_tokens, usd=usd)


def add_usage(parts: Iterable[Usage]) -> Usage:
    """Add up the usage of several calls. The price is the sum of the known prices, or None if none is known."""
    used = [part for part in parts if part.input_tokens or part.output_tokens or part.usd or part.estimated_tokens]
    prices = [part.usd for part in used if part.usd is not None]
    return Usage(
        input_tokens=sum(part.input_tokens for part in used),
        output_tokens=sum(part.output_tokens for part in used),
        cached_tokens=sum(part.cached_tokens for part in used),
        usd=None if used and not prices else sum(prices),
        estimated_tokens=sum(part.estimated_tokens for part in used),
    )


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Estimate the most tokens that these messages take, without the model's own tokenizer."""
    return sum(_count_tokens(_get_message_text(message)) + _TOKENS_PER_MESSAGE for message in messages)


def estimate_input(ask: Ask) -> int:
    """Estimate the most tokens that the question takes: its messages, its tools and its answer schema."""
    tools = sum(_count_tokens(tool.model_dump_json()) + _TOKENS_PER_MESSAGE for tool in ask.tools)
    shape = _count_tokens(json.dumps(ask.shape)) if ask.shape else 0
    return estimate_tokens(ask.messages) + tools + shape


def _get_message_text(message: Message) -> str:
    return message.text + "".join(call.id + call.name + call.arguments for call in message.calls)


def _count_tokens(text: str) -> int:
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


class ModelShare(FrozenValue):
    """One model's share of a run. The usage of failed calls counts for the model that finally answered."""

    model: str
    answers: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """The input tokens that were read from the provider's cache."""
    usd: float | None
    """None if no price is known."""

    @property
    def hit_rate(self) -> float:
        """The fraction of the input that was read from the provider's cache."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0


def list_model_shares(answers: Iterable[Answer]) -> list[ModelShare]:
    """List the shares in the order in which the models first answered. Questions that were not asked are left out."""
    answers_by_model: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.was_asked:
            answers_by_model.setdefault(answer.model, []).append(answer)
    return [_share(model, model_answers) for model, model_answers in answers_by_model.items()]


def _share(model: str, answers: list[Answer]) -> ModelShare:
    used = add_usage(answer.usage for answer in answers)
    return ModelShare(
        model=model,
        answers=len(answers),
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        usd=used.usd,
    )
