"""What calls cost in dollars, by a price table that ships with its library: nothing is fetched."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from redstart.core.chat import Answer, Ask, Message, Usage
from redstart.core.noun import FrozenValue
from redstart.ports.model.port import Rates

_LOCAL = frozenset({"ollama"})
"""Providers whose models run on the user's own machine: free."""

_CHARS_PER_TOKEN = 3
"""On the safe side: code takes between 3 and 4 characters a token."""
_TOKENS_PER_MESSAGE = 20
"""What the wire format adds around a message, on the safe side."""


def price(
    model: str,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    written_tokens: int = 0,
    *,
    rates: Rates | None = None,
) -> float | None:
    """The price of a call to `model` (`provider:name`), by `rates` where they are given.

    `cached_tokens`, which came from the provider's cache, and `written_tokens`, which went into it, are part of
    `input_tokens`.

    None where the price is not known; 0.0 for a model on the user's own machine.
    """
    cached = min(cached_tokens, input_tokens)
    written = min(written_tokens, input_tokens - cached)
    if rates is not None:
        return _by(rates, input_tokens - cached - written, cached, written, output_tokens)
    provider, _, name = model.partition(":")
    if provider in _LOCAL:
        return 0.0
    # The table takes most of a second to load; whoever never asks for a price never pays for it.
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


def _by(rates: Rates, plain: int, cached: int, written: int, said: int) -> float:
    read = rates.input if rates.cached is None else rates.cached
    write = rates.input if rates.written is None else rates.written
    return (plain * rates.input + cached * read + written * write + said * rates.output) / 1_000_000


def most(model: str, ask: Ask, *, caching: bool = False, rates: Rates | None = None) -> Usage:
    """The most that this question can take of `model`, as far as that can be said before it is asked.

    With `caching`, all of it may have to be put into the provider's cache, which costs more than sending it.
    """
    sent = estimate_input(ask)
    usd = price(model, sent, ask.max_tokens, 0, sent if caching else 0, rates=rates)
    return Usage(input_tokens=sent, output_tokens=ask.max_tokens, usd=usd)


def added(parts: Iterable[Usage]) -> Usage:
    """What several calls used together. The price is of those whose price is known; None where none is."""
    used = [part for part in parts if part.input_tokens or part.output_tokens or part.usd]
    known = [part.usd for part in used if part.usd is not None]
    return Usage(
        input_tokens=sum(part.input_tokens for part in used),
        output_tokens=sum(part.output_tokens for part in used),
        cached_tokens=sum(part.cached_tokens for part in used),
        usd=None if used and not known else sum(known),
    )


def estimate_tokens(messages: Iterable[Message]) -> int:
    """How many tokens these messages take at most, as far as that can be said without the model's own tokenizer."""
    return sum(_tokens(_said(message)) + _TOKENS_PER_MESSAGE for message in messages)


def estimate_input(ask: Ask) -> int:
    """How many tokens the question takes at most: its messages, the tools that it offers and the shape it asks for."""
    tools = sum(_tokens(tool.model_dump_json()) + _TOKENS_PER_MESSAGE for tool in ask.tools)
    shape = _tokens(json.dumps(ask.shape)) if ask.shape else 0
    return estimate_tokens(ask.messages) + tools + shape


def _said(message: Message) -> str:
    return message.text + "".join(call.id + call.name + call.arguments for call in message.calls)


def _tokens(text: str) -> int:
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


class ModelShare(FrozenValue):
    """One model's share of a run. What failed calls used is with the model that answered in the end."""

    model: str
    answers: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Those of the input that came from the provider's cache."""
    usd: float | None
    """None where the price of none of them is known."""

    @property
    def hit_rate(self) -> float:
        """The part of the input that came from the provider's cache."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0


def by_model(answers: Iterable[Answer]) -> list[ModelShare]:
    """The shares in the order in which the models first answered; questions that were not asked are left out."""
    of_model: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.asked:
            of_model.setdefault(answer.model, []).append(answer)
    return [_share(model, given) for model, given in of_model.items()]


def _share(model: str, given: list[Answer]) -> ModelShare:
    used = added(answer.usage for answer in given)
    return ModelShare(
        model=model,
        answers=len(given),
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        usd=used.usd,
    )
