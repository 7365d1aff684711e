"""Questions to a model, and its answers."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from redstart.core.frozen import FrozenValue


def _is_empty(value: object) -> bool:
    """Return whether the field is left out of the stored request, which then equals a request of before the field
    existed."""
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
    """The result of the tool call that the message's `reply_to` names."""


class Tool(FrozenValue):
    """A tool that a model may call instead of answering. The provider runs nothing: the caller answers the call."""

    name: str
    description: str
    parameters: dict[str, object]
    """A JSON schema of type `object`."""


class ToolCall(FrozenValue):
    """A call by a model. It is untrusted: the tool may not exist, and the arguments may not be JSON."""

    id: str
    name: str
    arguments: str
    """As the model wrote them."""


class Message(FrozenValue):
    role: Role
    text: str
    calls: tuple[ToolCall, ...] = Field(default=(), exclude_if=_is_empty)
    """In a message of the assistant: its tool calls besides the text."""
    reply_to: str = Field(default="", exclude_if=_is_empty)
    """In a message of a tool: the ID of the call that it answers."""


class Conversation(FrozenValue):
    """The messages of a conversation with a model, as stored between two attempts."""

    messages: tuple[Message, ...]


class Ask(FrozenValue):
    """One call to a model. `site` is the place in the run that makes it, and `number` says how many questions the same
    step has asked before it. Both are not part of the request's hash."""

    question: str
    """The name of the prompt: the step that asks."""
    tier: Tier
    messages: tuple[Message, ...]
    max_tokens: int = 4096
    temperature: float = 0.0
    tools: tuple[Tool, ...] = Field(default=(), exclude_if=_is_empty)
    """The tools that the model may call; empty for a question that is answered in text."""
    shape: dict[str, object] | None = Field(default=None, exclude_if=_is_empty)
    """A JSON schema of the answer's text, for models that support one. Other models are told in the prompt."""
    stuck: bool = Field(default=False, exclude_if=_is_empty)
    """Whether the run goes in circles, so the strong model is asked early."""
    site: str = Field(default="", exclude=True)
    number: int = Field(default=0, exclude=True)


class AnswerFault(StrEnum):
    """Why an answer is unusable although nothing is broken."""

    budget = "budget"
    """The model was not asked because the call could exceed a limit, or the call was aborted at the time limit."""
    truncated = "truncated"
    """The model reached its token limit."""
    refused = "refused"
    """The provider's content filter stopped the answer."""
    empty = "empty"
    """The answer is empty."""


class Usage(FrozenValue):
    """What a call cost. `usd` is None if the price is unknown: then the token limit applies."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0
    estimated_tokens: int = Field(default=0, exclude_if=lambda count: not count)
    """An estimate for a call that a person passes on to a model: nobody counts its tokens, and no limit applies."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Answer(FrozenValue):
    text: str
    model: str
    calls: tuple[ToolCall, ...] = ()
    """Tool calls. An answer with only tool calls has no text, but does not count as empty."""
    usage: Usage = Usage()
    fault: AnswerFault | None = None

    @property
    def was_asked(self) -> bool:
        """Whether a model was asked at all. A call that the budget stopped may have been made and then failed or been
        aborted."""
        return self.fault is not AnswerFault.budget or self.usage != Usage()
