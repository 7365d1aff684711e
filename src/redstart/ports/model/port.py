"""The port to a model."""

from __future__ import annotations

from typing import Protocol

from redstart.core.chat import Answer, Ask


class Model(Protocol):
    async def ask(self, ask: Ask) -> Answer:
        """One question, one answer, not streamed.

        Returns an `Answer` also where it cannot be used: `fault` says why (cut off by the token limit, empty, stopped
        by a content filter, not asked because of the budget). What was spent is in `usage`, for those too.

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

    def settle(self, usd: float | None, tokens: int) -> None:
        """Gives back what `reserve` held; what was really spent is counted when the call is recorded."""
        ...
