"""What is asked of a model and what comes back."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.noun import Noun


class Tier(StrEnum):
    """Which of the two configured models a question goes to."""

    fast = "fast"
    strong = "strong"


class Role(StrEnum):
    system = "system"
    user = "user"
    assistant = "assistant"


class Message(Noun):
    role: Role
    text: str


class Ask(Noun):
    """One call to a model. `site` says where in the run it was made; it is no part of the request's hash."""

    question: str
    """The prompt's name: the word of the step that asks."""
    tier: Tier
    messages: tuple[Message, ...]
    max_tokens: int = 4096
    temperature: float = 0.0
    site: str = Field(default="", exclude=True)


class Fault(StrEnum):
    """Why an answer cannot be used although nothing is broken."""

    budget = "budget"
    """Not asked: the call could have cost more than what is left."""
    truncated = "truncated"
    """The model ran into its token limit."""
    refused = "refused"
    """The provider's content filter stopped it."""
    empty = "empty"
    """The model said nothing."""


class Usage(Noun):
    """What a call cost. `usd` is None where the price is not known: then the token cap binds."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0


class Answer(Noun):
    text: str
    model: str
    usage: Usage = Usage()
    fault: Fault | None = None
