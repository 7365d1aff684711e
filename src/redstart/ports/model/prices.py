"""What a call costs in dollars, by a price table that ships with its library: nothing is fetched."""

from __future__ import annotations

import math
from collections.abc import Iterable

from redstart.core.chat import Message

_LOCAL = frozenset({"ollama"})
"""Providers whose models run on the user's own machine: free."""

_CHARS_PER_TOKEN = 3
"""On the safe side: code takes between 3 and 4 characters a token."""
_TOKENS_PER_MESSAGE = 20
"""What the wire format adds around a message, on the safe side."""


def price(model: str, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
    """The price of a call to `model` (`provider:name`), `cached_tokens` being part of `input_tokens`.

    None where the price is not known; 0.0 for a model on the user's own machine.
    """
    provider, _, name = model.partition(":")
    if provider in _LOCAL:
        return 0.0
    # The table takes most of a second to load; whoever never asks for a price never pays for it.
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=min(cached_tokens, input_tokens),
    )
    try:
        return float(calc_price(usage, name, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def estimate_tokens(messages: Iterable[Message]) -> int:
    """How many tokens these messages take at most, as far as that can be said without the model's own tokenizer."""
    return sum(math.ceil(len(message.text) / _CHARS_PER_TOKEN) + _TOKENS_PER_MESSAGE for message in messages)
