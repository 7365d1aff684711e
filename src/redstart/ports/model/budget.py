"""Budgets of money, tokens and time. The highest possible cost of a call is reserved before the call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from redstart.core.chat import Answer, AnswerFault, Ask, Tier, Usage
from redstart.core.errors import BudgetExceeded, ModelError
from redstart.core.run import Limits, Spend
from redstart.ports.model.port import Ledger, Model
from redstart.ports.model.prices import estimate_max_usage


class CallUsage:
    """The usage of a call: the most that it can be, until the real usage is known."""

    def __init__(self, usage: Usage) -> None:
        self.usage = usage


@contextmanager
def reserve_usage(ledger: Ledger, reserve: Usage) -> Generator[CallUsage]:
    """Reserve `reserve` during a call; afterwards hold what the call used until it is counted.

    Raises `BudgetExceeded` if it does not fit. A call that fails with `ModelError` used what the error says; an
    interrupted call may have used everything.
    """
    ledger.reserve(reserve.usd, reserve.tokens)
    used = CallUsage(reserve)
    try:
        yield used
    except ModelError as error:
        used.usage = error.usage
        raise
    finally:
        ledger.settle(reserve.usd, reserve.tokens, used.usage)


class BudgetedModel:
    """A model that is asked only if the most that the call can cost fits into the budget.

    Otherwise the answer is empty with the fault `budget`, and nothing is sent. `get_name` returns the name
    (`provider:model`) that a tier's calls are priced by.
    """

    def __init__(self, model: Model, ledger: Ledger, get_name: Callable[[Tier], str]) -> None:
        self._model = model
        self._ledger = ledger
        self._get_model_name = get_name

    async def ask(self, ask: Ask) -> Answer:
        name = self._get_model_name(ask.tier)
        try:
            with reserve_usage(self._ledger, estimate_max_usage(name, ask)) as used:
                answer = await self._model.ask(ask)
                used.usage = answer.usage
                return answer
        except BudgetExceeded:
            return Answer(text="", model=name, fault=AnswerFault.budget)


class RunLedger:
    """The ledger of one run during one step.

    `spent` is what the run had spent when the step began. `count` adds each call as it is recorded, including those
    that a resumed step finds in the journal. Usage that is not counted yet is held like a reserve; the usage of a
    question that failed for good stays held until the step ends. The step's time starts when the ledger is created.
    """

    def __init__(self, caps: Limits, spent: Spend, clock: Callable[[], float] = time.monotonic) -> None:
        self._caps = caps
        self._clock = clock
        self._ends = math.inf if caps.minutes is None else clock() + caps.minutes * 60 - spent.seconds
        self._prior_spend = spent
        self._step = Spend()
        self._reservations: list[tuple[float | None, int]] = []
        self._used_tokens = 0
        self._used_usd = 0.0

    @property
    def step_spend(self) -> Spend:
        return self._step

    def get_remaining_seconds(self) -> float:
        return max(self._ends - self._clock(), 0.0)

    def reserve(self, usd: float | None, tokens: int) -> None:
        if self.get_remaining_seconds() <= 0:
            raise BudgetExceeded("the run's time is used up", remedy="raise the run's minutes to go on")
        tokens_used = (
            self._prior_spend.tokens
            + self._step.tokens
            + self._used_tokens
            + sum(reserved for _, reserved in self._reservations)
        )
        if self._caps.tokens is not None and tokens_used + tokens > self._caps.tokens:
            remaining = max(self._caps.tokens - tokens_used, 0)
            raise BudgetExceeded(
                f"the next model call could take {tokens:,} tokens; {remaining:,} of {self._caps.tokens:,} are left",
                remedy="raise the run's token limit to go on",
            )
        usd_used = (
            self._prior_spend.usd
            + self._step.usd
            + self._used_usd
            + sum(reserved or 0.0 for reserved, _ in self._reservations)
        )
        if self._caps.usd is not None and usd is not None and usd_used + usd > self._caps.usd:
            remaining = max(self._caps.usd - usd_used, 0.0)
            raise BudgetExceeded(
                f"the next model call could cost ${usd:.4f}; ${remaining:.4f} of ${self._caps.usd:.2f} is left",
                remedy="raise the run's dollar limit to go on",
            )
        self._reservations.append((usd, tokens))

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        self._reservations.remove((usd, tokens))
        self._used_tokens += used.tokens
        self._used_usd += used.usd or 0.0

    def count(self, usage: Usage) -> None:
        """Add the usage of a recorded call."""
        self._used_tokens = max(self._used_tokens - usage.tokens, 0)
        self._used_usd = max(self._used_usd - (usage.usd or 0.0), 0.0)
        self._step = self._step.count(usage)
