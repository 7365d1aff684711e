"""Money and tokens: what a call may cost is held back before it is made."""

from __future__ import annotations

from collections.abc import Callable

from redstart.core.chat import Answer, Ask, Fault, Tier, Usage
from redstart.core.errors import BudgetExceeded
from redstart.core.run import Limits, Spend
from redstart.ports.model.port import Ledger, Model
from redstart.ports.model.prices import estimate_tokens, price


class Budgeted:
    """A model that is asked only while the most that the call can cost still fits under the cap.

    Where it does not, the answer is empty with the fault `budget`, and nothing was sent. `name_of` gives the name
    (`provider:model`) by which a tier's calls are priced.
    """

    def __init__(self, model: Model, ledger: Ledger, name_of: Callable[[Tier], str]) -> None:
        self._model = model
        self._ledger = ledger
        self._name_of = name_of

    async def ask(self, ask: Ask) -> Answer:
        name = self._name_of(ask.tier)
        input_tokens = estimate_tokens(ask.messages)
        usd = price(name, input_tokens, ask.max_tokens)
        tokens = input_tokens + ask.max_tokens
        try:
            self._ledger.reserve(usd, tokens)
        except BudgetExceeded:
            return Answer(text="", model=name, fault=Fault.budget)
        try:
            return await self._model.ask(ask)
        finally:
            self._ledger.settle(usd, tokens)


class RunLedger:
    """The ledger of one run while a step of it is at work.

    `spent` is what the run had spent when the step began; `count` adds each call as it is recorded, also one that a
    resumed step finds in the journal.
    """

    def __init__(self, caps: Limits, spent: Spend) -> None:
        self._caps = caps
        self._spent = spent
        self._step = Spend()
        self._held: list[tuple[float | None, int]] = []

    @property
    def spend_of_step(self) -> Spend:
        return self._step

    def reserve(self, usd: float | None, tokens: int) -> None:
        tokens_gone = self._spent.tokens + self._step.tokens + sum(held for _, held in self._held)
        if self._caps.tokens is not None and tokens_gone + tokens > self._caps.tokens:
            left = max(self._caps.tokens - tokens_gone, 0)
            raise BudgetExceeded(
                f"the next model call could take {tokens:,} tokens; {left:,} of {self._caps.tokens:,} are left",
                remedy="raise the run's token limit to go on",
            )
        usd_gone = self._spent.usd + self._step.usd + sum(held or 0.0 for held, _ in self._held)
        if self._caps.usd is not None and usd is not None and usd_gone + usd > self._caps.usd:
            left = max(self._caps.usd - usd_gone, 0.0)
            raise BudgetExceeded(
                f"the next model call could cost ${usd:.4f}; ${left:.4f} of ${self._caps.usd:.2f} is left",
                remedy="raise the run's dollar limit to go on",
            )
        self._held.append((usd, tokens))

    def settle(self, usd: float | None, tokens: int) -> None:
        self._held.remove((usd, tokens))

    def count(self, usage: Usage) -> None:
        """Adds what a recorded call cost."""
        step = self._step
        self._step = step.model_copy(
            update={
                "calls": step.calls + 1,
                "input_tokens": step.input_tokens + usage.input_tokens,
                "output_tokens": step.output_tokens + usage.output_tokens,
                "usd": step.usd + (usage.usd or 0.0),
                "unpriced": step.unpriced + (usage.usd is None),
            }
        )
