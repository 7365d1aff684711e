"""Any sequence of calls spends at most one reserve more than the limit."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.core.chat import Answer, Ask, Message, Role, Tier, Usage
from redstart.core.errors import ModelError
from redstart.core.run import Limits, Spend
from redstart.ports.model.budget import BudgetedModel, RunLedger
from redstart.ports.model.prices import estimate_tokens, price

PRICED = "openai:gpt-4o"


def create_ask(text: str = "x" * 300, max_tokens: int = 1000) -> Ask:
    messages = (Message(role=Role.user, text=text),)
    return Ask(question="patch", tier=Tier.strong, messages=messages, max_tokens=max_tokens)


CALLS = st.lists(
    st.tuples(
        st.integers(0, 4000),  # characters of the question
        st.integers(500, 4000),  # maximum tokens of the answer
        st.floats(0.2, 2),  # the actual usage, as a share of the reserve
        st.booleans(),  # whether the call fails
    ),
    min_size=5,
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    calls=CALLS,
    tokens=st.one_of(st.none(), st.integers(0, 20_000)),
    usd=st.one_of(st.none(), st.floats(0, 0.05)),
    at_once=st.booleans(),
)
def test_spending_exceeds_the_limit_by_at_most_one_reserve(
    calls: list[tuple[int, int, float, bool]], tokens: int | None, usd: float | None, at_once: bool
) -> None:
    """This holds even if sequential calls take up to twice their reserve. If concurrent calls keep to their reserve,
    the limit itself holds."""
    ledger = RunLedger(Limits(tokens=tokens, usd=usd), Spend())
    overshoot = [0, 0.0]

    class Meter:
        def __init__(self, share: float, fails: bool) -> None:
            self.share = min(share, 1.0) if at_once else share
            self.fails = fails

        async def ask(self, ask: Ask) -> Answer:
            input_tokens, output_tokens = estimate_tokens(ask.messages), ask.max_tokens
            await asyncio.sleep(0)
            if self.fails:
                raise ModelError("down")
            actual_tokens = (int(input_tokens * self.share), int(output_tokens * self.share))
            if not at_once:
                overshoot[0], overshoot[1] = (
                    input_tokens + output_tokens,
                    price(PRICED, input_tokens, output_tokens) or 0.0,
                )
            usage = Usage(
                input_tokens=actual_tokens[0], output_tokens=actual_tokens[1], usd=price(PRICED, *actual_tokens)
            )
            return Answer(text="x", model=PRICED, usage=usage)

    async def call(size: int, max_tokens: int, share: float, fails: bool) -> None:
        model = BudgetedModel(Meter(share, fails), ledger, lambda _: PRICED)
        try:
            answer = await model.ask(create_ask("x" * size, max_tokens))
        except ModelError:
            return
        if answer.fault is None:
            ledger.count(answer.usage)

    def check_limits() -> None:
        step_spend = ledger.step_spend
        assert tokens is None or step_spend.tokens <= tokens + overshoot[0]
        assert usd is None or step_spend.usd <= usd + overshoot[1] + 1e-9

    async def run() -> None:
        if at_once:
            await asyncio.gather(*(call(*item) for item in calls))
            return
        for item in calls:
            await call(*item)
            check_limits()

    asyncio.run(run())
    check_limits()
    if tokens is not None and (remaining := tokens - ledger.step_spend.tokens) >= 0:
        ledger.reserve(None, remaining)  # no reserve is left over
