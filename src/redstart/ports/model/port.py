"""The port to a model."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from redstart.core.change import EditKind
from redstart.core.chat import Answer, Ask, Usage
from redstart.core.noun import FrozenValue


class Model(Protocol):
    async def ask(self, ask: Ask) -> Answer:
        """One question, one answer, not streamed.

        Returns an `Answer` also where it cannot be used: `fault` says why (cut off by the token limit, empty, stopped
        by a content filter, not asked or broken off because of the budget). What was spent is in `usage`, for those
        too, and for the calls that failed before it.

        Raises `ModelError` where there is no answer: the endpoint is unreachable, refuses, sends something that is no
        reply of its protocol or lacks a finish reason, or does not answer before the call's deadline.
        """
        ...


class Ledger(Protocol):
    """Who may spend how much. The gateway reserves before a call and settles after it."""

    def reserve(self, usd: float | None, tokens: int) -> None:
        """Holds that much until `settle`. Raises `BudgetExceeded` where it does not fit under the cap any more.

        `usd` is None where the price is not known: then only tokens are held.
        """
        ...

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        """Gives back what `reserve` held, and holds what the call used instead until that is counted.

        It is counted when the answer is recorded, so that what a resumed run finds in its journal counts as well.
        """
        ...


class TimedLedger(Ledger, Protocol):
    """A ledger whose `reserve` also raises where no time is left."""

    def left(self) -> float:
        """Seconds until the time is used up; infinite where there is no cap of it."""
        ...


class Rates(FrozenValue):
    """Dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Read from the provider's cache; as `input` where it is not said."""
    written: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Put into the provider's cache; as `input` where it is not said."""


class Profile(FrozenValue):
    """What is known of a model before it is asked. The defaults are those of a model that nobody knows."""

    context: int = Field(default=32_768, gt=0)
    """Tokens that question and answer may have together."""
    edits: EditKind = EditKind.block
    """The form of edits that it is asked for until its own have been counted."""
    tools: bool = False
    """Whether it is offered tools by its wire; else they are offered in words, and its calls read from its text."""
    shapes: bool = False
    """Whether it can be held to a JSON schema."""
    json_edits: bool = False
    """Whether, where it can be held to a schema, edits too are asked for as JSON."""
    brief: bool = False
    """Whether it is asked for edits, and for tests of a new program, in few words."""
    looks: int = Field(default=6, ge=0)
    """How often it may look around before it answers."""
    caching: bool = False
    """Whether what stays the same from question to question is marked for its provider's cache."""
    rates: Rates | None = None
    """What it costs; None for what the price table says."""
