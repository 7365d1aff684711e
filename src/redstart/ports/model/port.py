"""The port to models."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from redstart.core.change import EditKind
from redstart.core.chat import Answer, Ask, Usage
from redstart.core.frozen import FrozenValue


class Model(Protocol):
    async def ask(self, ask: Ask) -> Answer:
        """Ask one question and return one answer, not streamed.

        Returns an `Answer` even if it is unusable. `fault` says why: cut off by the token limit, empty, stopped by a
        content filter, or not asked or interrupted because of the budget. `usage` is what was spent, including on
        unusable answers and on calls that failed before.

        Raises `ModelError` if there is no answer: the endpoint is unreachable, refuses the call, sends an invalid reply
        or one without a finish reason, or does not answer before the call's deadline.
        """
        ...


class Ledger(Protocol):
    """A spending limit. The gateway reserves before a call and settles after it."""

    def reserve(self, usd: float | None, tokens: int) -> None:
        """Reserve this amount until `settle`. Raises `BudgetExceeded` if it does not fit into the limit.

        `usd` is None if the price is unknown: then only tokens are reserved.
        """
        ...

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        """Release what `reserve` held, and hold what the call used instead until it is counted.

        It is counted when the answer is recorded, so that calls that a resumed run finds in its journal count as well.
        """
        ...


class TimedLedger(Ledger, Protocol):
    """A ledger whose `reserve` also raises if no time is left."""

    def get_remaining_seconds(self) -> float:
        """Return the seconds until the time is used up; infinite if there is no time limit."""
        ...


class Rates(FrozenValue):
    """Prices in dollars per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Tokens read from the provider's cache; defaults to `input`."""
    written: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Tokens written to the provider's cache; defaults to `input`."""


class Profile(FrozenValue):
    """The known properties of a model. The defaults are for an unknown model."""

    context: int = Field(default=32_768, gt=0)
    """The most tokens of question and answer together."""
    edits: EditKind = EditKind.block
    """The edit form that the model is asked for until there are statistics about its own edits."""
    tools: bool = False
    """Whether tools are sent through the API; else they are described in text, and calls are parsed from the answer."""
    shapes: bool = False
    """Whether the model's answer can be constrained to a JSON schema."""
    json_edits: bool = False
    """Whether edits too are requested as JSON, if the model supports a schema."""
    brief: bool = False
    """Whether the prompts for edits, and for tests of a new program, are short."""
    session: bool = False
    """Whether the model works on a copy with tools before it submits a patch, instead of answering with all edits."""
    looks: int = Field(default=6, ge=0)
    """The most tool calls before the model answers."""
    caching: bool = False
    """Whether unchanged parts of consecutive questions are marked for the provider's cache."""
    rates: Rates | None = None
    """The model's prices; None means those of the price table."""
