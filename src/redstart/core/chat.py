"""What is asked of a model and what comes back."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.noun import FrozenValue


def _absent(value: object) -> bool:
    """Left out of what is written down: a request without it is the request of before there was such a field."""
    return not value


class Tier(StrEnum):
    """Which of the two configured models a question goes to."""

    fast = "fast"
    strong = "strong"


class Role(StrEnum):
    system = "system"
    user = "user"
    assistant = "assistant"
    tool = "tool"
    """What a tool gave back, to the call that the message's `reply_to` names."""


class Tool(FrozenValue):
    """What a model may call instead of answering. Nothing is run by the provider: the caller answers the call."""

    name: str
    description: str
    parameters: dict[str, object]
    """A JSON schema of type object."""


class ToolCall(FrozenValue):
    """A call that a model made. It is untrusted: the name may be none that was offered, the arguments no JSON."""

    id: str
    name: str
    arguments: str
    """As the model wrote them."""


class Message(FrozenValue):
    role: Role
    text: str
    calls: tuple[ToolCall, ...] = Field(default=(), exclude_if=_absent)
    """Of the assistant: the calls that it made beside its text."""
    reply_to: str = Field(default="", exclude_if=_absent)
    """Of a tool: the id of the call that this answers."""


class Ask(FrozenValue):
    """One call to a model. `site` says where in the run it was made; it is no part of the request's hash."""

    question: str
    """The prompt's name: the word of the step that asks."""
    tier: Tier
    messages: tuple[Message, ...]
    max_tokens: int = 4096
    temperature: float = 0.0
    tools: tuple[Tool, ...] = Field(default=(), exclude_if=_absent)
    """What the model may call; empty for a question that is answered in text."""
    shape: dict[str, object] | None = Field(default=None, exclude_if=_absent)
    """A JSON schema for the answer's text, for models that can be held to one; others are told in the prompt."""
    stuck: bool = Field(default=False, exclude_if=_absent)
    """Whether the run goes in circles, so that the strong model is to be asked before its turn."""
    site: str = Field(default="", exclude=True)


class AnswerFault(StrEnum):
    """Why an answer cannot be used although nothing is broken."""

    budget = "budget"
    """Not asked: the call could have cost more than what is left. Or broken off, at the end of the run's time."""
    truncated = "truncated"
    """The model ran into its token limit."""
    refused = "refused"
    """The provider's content filter stopped it."""
    empty = "empty"
    """The model said nothing."""


class Usage(FrozenValue):
    """What a call cost. `usd` is None where the price is not known: then the token cap binds."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Answer(FrozenValue):
    text: str
    model: str
    calls: tuple[ToolCall, ...] = ()
    """Calls of the tools that were offered. An answer that only calls has no text, and is not empty."""
    usage: Usage = Usage()
    fault: AnswerFault | None = None

    @property
    def asked(self) -> bool:
        """Whether a model was asked at all. What the budget stopped may have been, in vain or until broken off."""
        return self.fault is not AnswerFault.budget or self.usage != Usage()
