from __future__ import annotations

import asyncio
import math

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Usage
from redstart.core.errors import BudgetExceeded, ModelError
from redstart.core.run import Limits, Spend
from redstart.ports.model.budget import BudgetedModel, RunLedger, reserve_usage
from redstart.ports.model.prices import price
from redstart.testing.model import ScriptedModel

PRICED = "openai:gpt-4o"
UNPRICED = "openai:local"


def create_ask(text: str = "x" * 300, max_tokens: int = 1000) -> Ask:
    messages = (Message(role=Role.user, text=text),)
    return Ask(question="patch", tier=Tier.strong, messages=messages, max_tokens=max_tokens)


def create_budgeted_model(model: ScriptedModel, ledger: RunLedger, name: str = PRICED) -> BudgetedModel:
    return BudgetedModel(model, ledger, lambda _: name)


def test_call_within_budget_is_made_and_its_reserve_released() -> None:
    ledger = RunLedger(Limits(tokens=1120, usd=None), Spend())
    answers = [Answer(text=text, model=PRICED) for text in ("one", "two")]
    model = create_budgeted_model(ScriptedModel(answers), ledger)
    assert [asyncio.run(model.ask(create_ask())).text for _ in range(2)] == ["one", "two"]


def test_call_that_could_exceed_the_token_limit_is_not_made() -> None:
    ledger = RunLedger(Limits(tokens=1119, usd=None), Spend())
    script = ScriptedModel([])
    answer = asyncio.run(create_budgeted_model(script, ledger, UNPRICED).ask(create_ask()))
    assert (answer.text, answer.fault, answer.model, answer.usage) == ("", AnswerFault.budget, UNPRICED, Usage())
    assert script.questions == []


def test_call_that_could_exceed_the_dollar_limit_is_not_made() -> None:
    max_cost = price(PRICED, 120, 1000)
    assert max_cost is not None
    spend = Spend(usd=1.0)
    fits, does_not = (RunLedger(Limits(usd=1.0 + max_cost * share, tokens=None), spend) for share in (1.001, 0.999))
    assert asyncio.run(create_budgeted_model(ScriptedModel(["yes"]), fits).ask(create_ask())).text == "yes"
    assert asyncio.run(create_budgeted_model(ScriptedModel([]), does_not).ask(create_ask())).fault is AnswerFault.budget


def test_no_call_is_made_after_the_time_limit() -> None:
    clock = iter([100.0, 159.9, 160.0]).__next__
    ledger = RunLedger(Limits(minutes=2), Spend(seconds=60), clock)
    model = create_budgeted_model(ScriptedModel(["in time"]), ledger, UNPRICED)
    assert [asyncio.run(model.ask(create_ask())).text for _ in range(2)] == ["in time", ""]


def test_time_without_a_limit_is_infinite() -> None:
    assert RunLedger(Limits(minutes=None), Spend(seconds=1e9)).get_remaining_seconds() == math.inf


def test_unknown_price_ignores_the_dollar_limit_but_not_the_token_limit() -> None:
    ledger = RunLedger(Limits(usd=0.0, tokens=2000), Spend(input_tokens=500, output_tokens=380))
    model = create_budgeted_model(ScriptedModel(["yes"]), ledger, UNPRICED)
    answer = asyncio.run(model.ask(create_ask()))
    assert answer.text == "yes"
    ledger.count(Usage(input_tokens=1, usd=None))
    assert asyncio.run(model.ask(create_ask())).fault is AnswerFault.budget


def test_reserve_of_a_failed_call_is_released() -> None:
    ledger = RunLedger(Limits(tokens=1120, usd=None), Spend())
    model = create_budgeted_model(ScriptedModel([ModelError("down"), "back"]), ledger)
    with pytest.raises(ModelError):
        asyncio.run(model.ask(create_ask()))
    assert asyncio.run(model.ask(create_ask())).text == "back"


def test_concurrent_calls_share_the_limit() -> None:
    async def ask_three_times(model: BudgetedModel) -> list[Answer]:
        return list(await asyncio.gather(*(model.ask(create_ask()) for _ in range(3))))

    class Slow(ScriptedModel):
        async def ask(self, ask: Ask) -> Answer:
            await asyncio.sleep(0)
            return await super().ask(ask)

    ledger = RunLedger(Limits(tokens=2 * 1120, usd=None), Spend())
    answers = asyncio.run(ask_three_times(create_budgeted_model(Slow(["a", "b"]), ledger)))
    assert [answer.fault for answer in answers] == [None, None, AnswerFault.budget]


def test_ledger_reports_the_remaining_budget() -> None:
    ledger = RunLedger(Limits(usd=2.0, tokens=10_000), Spend(usd=1.5, input_tokens=4000))
    with pytest.raises(BudgetExceeded, match=r"6,001 tokens; 6,000 of 10,000"):
        ledger.reserve(None, 6001)
    with pytest.raises(BudgetExceeded, match=r"\$0.6000; \$0.5000 of \$2.00"):
        ledger.reserve(0.6, 1)
    ledger.reserve(0.5, 6000)


def test_step_counts_its_own_calls() -> None:
    ledger = RunLedger(Limits(), Spend(calls=9, usd=1.0, input_tokens=5))
    ledger.count(Usage(input_tokens=10, output_tokens=3, usd=0.25))
    ledger.count(Usage(input_tokens=20, output_tokens=4, usd=None))
    assert ledger.step_spend == Spend(calls=2, input_tokens=30, output_tokens=7, usd=0.25, unpriced=1)


def test_spend_of_the_step_counts_against_the_dollar_limit() -> None:
    ledger = RunLedger(Limits(usd=2.0, tokens=None), Spend(usd=1.0))
    ledger.count(Usage(usd=0.75))
    ledger.reserve(0.25, 1)
    ledger.settle(0.25, 1, Usage())
    with pytest.raises(BudgetExceeded):
        ledger.reserve(0.26, 1)


def test_everything_fits_without_limits() -> None:
    RunLedger(Limits(usd=None, tokens=None), Spend()).reserve(1e6, 10**12)


def test_overspent_limits_have_nothing_left() -> None:
    spend = Spend(usd=3.0, input_tokens=50)
    with pytest.raises(BudgetExceeded, match=r"take 1 tokens; 0 of 10 are left"):
        RunLedger(Limits(usd=None, tokens=10), spend).reserve(None, 1)
    with pytest.raises(BudgetExceeded, match=r"cost \$0.1000; \$0.0000 of \$2.00 is left"):
        RunLedger(Limits(usd=2.0, tokens=None), spend).reserve(0.1, 1)


def test_remaining_time_is_never_negative() -> None:
    clock = iter([0.0, 59.0, 61.0]).__next__
    ledger = RunLedger(Limits(minutes=1), Spend(), clock)
    assert [ledger.get_remaining_seconds(), ledger.get_remaining_seconds()] == [1.0, 0.0]


def test_used_up_time_is_the_stated_reason() -> None:
    with pytest.raises(BudgetExceeded, match="the run's time is used up") as error:
        RunLedger(Limits(minutes=1), Spend(seconds=60), lambda: 0.0).reserve(None, 0)
    assert error.value.remedy == "raise the run's minutes to go on"
    RunLedger(Limits(minutes=1), Spend(seconds=59), lambda: 0.0).reserve(None, 0)


def test_usage_is_held_until_it_is_counted() -> None:
    """A call is settled when it ends and counted when it is recorded: between the two it must not be free."""
    ledger = RunLedger(Limits(usd=1.0, tokens=100), Spend())
    ledger.reserve(0.5, 50)
    ledger.settle(0.5, 50, Usage(input_tokens=30, output_tokens=10, usd=0.4))
    with pytest.raises(BudgetExceeded, match="60 of 100"):
        ledger.reserve(None, 61)
    with pytest.raises(BudgetExceeded, match=r"\$0.6000 of \$1.00"):
        ledger.reserve(0.61, 1)
    ledger.count(Usage(input_tokens=30, output_tokens=10, usd=0.4))
    ledger.reserve(0.6, 60)


def test_count_of_a_call_from_the_journal_takes_nothing_from_others() -> None:
    """A resumed step counts calls that were never settled here."""
    ledger = RunLedger(Limits(usd=1.0, tokens=100), Spend())
    ledger.count(Usage(input_tokens=60, usd=0.6))
    ledger.reserve(0.1, 10)
    ledger.settle(0.1, 10, Usage(input_tokens=10, usd=0.1))
    with pytest.raises(BudgetExceeded, match="30 of 100"):
        ledger.reserve(None, 31)
    with pytest.raises(BudgetExceeded, match=r"\$0.3000 of \$1.00"):
        ledger.reserve(0.31, 1)


def test_count_of_a_call_of_unknown_price_frees_no_money_of_others() -> None:
    ledger = RunLedger(Limits(usd=1.0), Spend())
    ledger.reserve(0.5, 10)
    ledger.settle(0.5, 10, Usage(input_tokens=10, usd=0.4))
    ledger.count(Usage(input_tokens=10))
    with pytest.raises(BudgetExceeded, match=r"\$0.6000 of \$1.00"):
        ledger.reserve(0.61, 1)


def test_open_reservations_count_against_both_limits() -> None:
    ledger = RunLedger(Limits(usd=1.0, tokens=100), Spend())
    ledger.reserve(0.5, 40)
    ledger.reserve(None, 20)
    with pytest.raises(BudgetExceeded, match="40 of 100"):
        ledger.reserve(None, 41)
    with pytest.raises(BudgetExceeded, match=r"\$0.5000 of \$1.00"):
        ledger.reserve(0.51, 1)


def test_failed_call_holds_what_the_error_says_and_an_interrupted_one_everything() -> None:
    failed_call, interrupted_call = (RunLedger(Limits(usd=None, tokens=100), Spend()) for _ in range(2))
    with pytest.raises(ModelError), reserve_usage(failed_call, Usage(input_tokens=60)):
        raise ModelError("down", usage=Usage(input_tokens=15))
    with pytest.raises(KeyboardInterrupt), reserve_usage(interrupted_call, Usage(input_tokens=60)):
        raise KeyboardInterrupt
    for ledger, left in ((failed_call, 85), (interrupted_call, 40)):
        with pytest.raises(BudgetExceeded, match=f"{left} of 100"):
            ledger.reserve(None, 101)
