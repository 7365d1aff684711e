from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Usage
from redstart.core.errors import BudgetExceeded, ModelError
from redstart.core.run import Limits, Spend
from redstart.ports.model.budget import BudgetedModel, RunLedger
from redstart.ports.model.prices import estimate_tokens, price
from redstart.testing.model import ScriptedModel

PRICED = "openai:gpt-4o"
UNPRICED = "openai:local"


def asking(text: str = "x" * 300, max_tokens: int = 1000) -> Ask:
    messages = (Message(role=Role.user, text=text),)
    return Ask(question="patch", tier=Tier.strong, messages=messages, max_tokens=max_tokens)


def budgeted(model: ScriptedModel, ledger: RunLedger, name: str = PRICED) -> BudgetedModel:
    return BudgetedModel(model, ledger, lambda _: name)


def test_a_call_that_fits_is_made_and_what_was_held_is_given_back() -> None:
    ledger = RunLedger(Limits(tokens=1120, usd=None), Spend())
    nothing = [Answer(text=text, model=PRICED) for text in ("one", "two")]
    model = budgeted(ScriptedModel(nothing), ledger)
    assert [asyncio.run(model.ask(asking())).text for _ in range(2)] == ["one", "two"]


def test_a_call_that_could_pass_the_token_cap_is_not_made() -> None:
    ledger = RunLedger(Limits(tokens=1119, usd=None), Spend())
    script = ScriptedModel([])
    answer = asyncio.run(budgeted(script, ledger, UNPRICED).ask(asking()))
    assert (answer.text, answer.fault, answer.model, answer.usage) == ("", AnswerFault.budget, UNPRICED, Usage())
    assert script.asks == []


def test_a_call_that_could_pass_the_dollar_cap_is_not_made() -> None:
    most = price(PRICED, 120, 1000)
    assert most is not None
    spent = Spend(usd=1.0)
    fits, does_not = (RunLedger(Limits(usd=1.0 + most * share, tokens=None), spent) for share in (1.001, 0.999))
    assert asyncio.run(budgeted(ScriptedModel(["yes"]), fits).ask(asking())).text == "yes"
    assert asyncio.run(budgeted(ScriptedModel([]), does_not).ask(asking())).fault is AnswerFault.budget


def test_no_call_is_made_when_the_time_is_over() -> None:
    clock = iter([100.0, 159.9, 160.0]).__next__
    ledger = RunLedger(Limits(minutes=2), Spend(seconds=60), clock)
    model = budgeted(ScriptedModel(["in time"]), ledger, UNPRICED)
    assert [asyncio.run(model.ask(asking())).text for _ in range(2)] == ["in time", ""]


def test_time_is_without_end_where_it_has_no_cap() -> None:
    assert RunLedger(Limits(minutes=None), Spend(seconds=1e9)).left() == math.inf


def test_the_dollar_cap_does_not_bind_where_the_price_is_unknown_but_tokens_do() -> None:
    ledger = RunLedger(Limits(usd=0.0, tokens=2000), Spend(input_tokens=500, output_tokens=380))
    model = budgeted(ScriptedModel(["yes"]), ledger, UNPRICED)
    answer = asyncio.run(model.ask(asking()))
    assert answer.text == "yes"
    ledger.count(Usage(input_tokens=1, usd=None))
    assert asyncio.run(model.ask(asking())).fault is AnswerFault.budget


def test_what_a_failed_call_held_is_given_back() -> None:
    ledger = RunLedger(Limits(tokens=1120, usd=None), Spend())
    model = budgeted(ScriptedModel([ModelError("down"), "back"]), ledger)
    with pytest.raises(ModelError):
        asyncio.run(model.ask(asking()))
    assert asyncio.run(model.ask(asking())).text == "back"


def test_calls_at_once_share_the_cap() -> None:
    async def three(model: BudgetedModel) -> list[Answer]:
        return list(await asyncio.gather(*(model.ask(asking()) for _ in range(3))))

    class Slow(ScriptedModel):
        async def ask(self, ask: Ask) -> Answer:
            await asyncio.sleep(0)
            return await super().ask(ask)

    ledger = RunLedger(Limits(tokens=2 * 1120, usd=None), Spend())
    answers = asyncio.run(three(budgeted(Slow(["a", "b"]), ledger)))
    assert [answer.fault for answer in answers] == [None, None, AnswerFault.budget]


def test_the_ledger_says_what_is_left() -> None:
    ledger = RunLedger(Limits(usd=2.0, tokens=10_000), Spend(usd=1.5, input_tokens=4000))
    with pytest.raises(BudgetExceeded, match=r"6,001 tokens; 6,000 of 10,000"):
        ledger.reserve(None, 6001)
    with pytest.raises(BudgetExceeded, match=r"\$0.6000; \$0.5000 of \$2.00"):
        ledger.reserve(0.6, 1)
    ledger.reserve(0.5, 6000)


def test_the_step_counts_its_own_calls() -> None:
    ledger = RunLedger(Limits(), Spend(calls=9, usd=1.0, input_tokens=5))
    ledger.count(Usage(input_tokens=10, output_tokens=3, usd=0.25))
    ledger.count(Usage(input_tokens=20, output_tokens=4, usd=None))
    assert ledger.spend_of_step == Spend(calls=2, input_tokens=30, output_tokens=7, usd=0.25, unpriced=1)


def test_what_the_step_spent_counts_against_the_dollar_cap() -> None:
    ledger = RunLedger(Limits(usd=2.0, tokens=None), Spend(usd=1.0))
    ledger.count(Usage(usd=0.75))
    ledger.reserve(0.25, 1)
    ledger.settle(0.25, 1, Usage())
    with pytest.raises(BudgetExceeded):
        ledger.reserve(0.26, 1)


def test_without_caps_everything_fits() -> None:
    RunLedger(Limits(usd=None, tokens=None), Spend()).reserve(1e6, 10**12)


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
def test_spending_never_passes_the_cap_by_more_than_one_calls_reserve(
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
            sent, said = estimate_tokens(ask.messages), ask.max_tokens
            await asyncio.sleep(0)
            if self.fails:
                raise ModelError("down")
            real = (int(sent * self.share), int(said * self.share))
            if not at_once:
                overshoot[0], overshoot[1] = sent + said, price(PRICED, sent, said) or 0.0
            usage = Usage(input_tokens=real[0], output_tokens=real[1], usd=price(PRICED, *real))
            return Answer(text="x", model=PRICED, usage=usage)

    async def call(size: int, most: int, share: float, fails: bool) -> None:
        model = BudgetedModel(Meter(share, fails), ledger, lambda _: PRICED)
        try:
            answer = await model.ask(asking("x" * size, most))
        except ModelError:
            return
        if answer.fault is None:
            ledger.count(answer.usage)

    def keeps_to_the_caps() -> None:
        spent = ledger.spend_of_step
        assert tokens is None or spent.tokens <= tokens + overshoot[0]
        assert usd is None or spent.usd <= usd + overshoot[1] + 1e-9

    async def run() -> None:
        if at_once:
            await asyncio.gather(*(call(*item) for item in calls))
            return
        for item in calls:
            await call(*item)
            keeps_to_the_caps()

    asyncio.run(run())
    keeps_to_the_caps()
    if tokens is not None and (left := tokens - ledger.spend_of_step.tokens) >= 0:
        ledger.reserve(None, left)  # no reserve is left over
