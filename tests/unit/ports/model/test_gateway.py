"""The retry loop, on a clock that moves only when a call waits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Usage
from redstart.core.errors import (
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)
from redstart.core.run import Limits, Spend
from redstart.ports.model.budget import RunLedger
from redstart.ports.model.gateway import Gateway, RetryPolicy, TimeAndChance
from redstart.ports.model.lanes import ModelRoute, RouteOptions
from redstart.ports.model.port import Profile, Rates
from redstart.testing.model import ScriptedModel

ASK = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="x" * 240),), max_tokens=900)
MOST = 1000
"""Tokens reserved for one call of `ASK`."""


class Clock:
    """A clock that moves only when a call waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


class Bench:
    """A gateway over scripted models, of which the first is the configured one."""

    def __init__(
        self,
        *scripts: Sequence[str | Answer | Exception],
        policy: RetryPolicy | None = None,
        luck: float = 1.0,
        options: RouteOptions | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.clock = Clock()
        names = ["openai:first-local", "openai:second-local", "openai:third-local"]
        self.models = [ScriptedModel(script, name=name) for script, name in zip(scripts, names, strict=False)]
        lanes = [
            ModelRoute(name, model, options=options, profile=profile)
            for name, model in zip(names, self.models, strict=False)
        ]
        chance = TimeAndChance(now=self.clock.now, sleep=self.clock.sleep, luck=lambda: luck)
        self.gateway = Gateway(lambda _: lanes, policy, chance)

    def ask(self, ask: Ask = ASK) -> Answer:
        return asyncio.run(self.gateway.ask(ask))

    @property
    def asked(self) -> list[int]:
        return [len(model.asks) for model in self.models]


PASSING = [ModelBusy, ModelUnreachable, ModelTimeout, ModelGarbled]


@pytest.mark.parametrize("kind", PASSING)
def test_what_may_pass_is_tried_again(kind: type[ModelError]) -> None:
    bench = Bench([kind("no"), kind("no"), "yes"])
    answer = bench.ask()
    assert (answer.text, answer.model) == ("yes", "openai:first-local")
    assert bench.clock.waits == [1.0, 2.0]


@pytest.mark.parametrize("kind", [ModelRefused, ModelError])
def test_what_will_not_pass_is_not(kind: type[ModelError]) -> None:
    bench = Bench([kind("bad key", remedy="check the key")])
    with pytest.raises(kind, match=r"^bad key$") as caught:
        bench.ask()
    assert caught.value.remedy == "check the key"
    assert bench.asked == [1]
    assert bench.clock.waits == []


def test_the_waits_double_up_to_a_bound_and_luck_shortens_them() -> None:
    policy = RetryPolicy(tries=8, longest_wait=10.0, failures=99)
    full, none = (Bench([ModelBusy("no")] * 7 + ["yes"], policy=policy, luck=luck) for luck in (1.0, 0.0))
    assert [bench.ask().text for bench in (full, none)] == ["yes", "yes"]
    assert full.clock.waits == [1, 2, 4, 8, 10, 10, 10]
    assert none.clock.waits == []


def test_the_luck_of_a_seed_gives_the_same_waits_again() -> None:
    def waits(seed: int) -> list[float]:
        clock, luck = Clock(), random.Random(seed)
        lane = ModelRoute("openai:a-local", ScriptedModel([ModelBusy("no")] * 4 + ["yes"]))
        chance = TimeAndChance(now=clock.now, sleep=clock.sleep, luck=luck.random)
        asyncio.run(Gateway(lambda _: [lane], chance=chance).ask(ASK))
        return clock.waits

    assert waits(1) == waits(1) != waits(2)
    assert all(0 <= wait <= 2**number for number, wait in enumerate(waits(1)))


def test_the_endpoint_is_not_asked_before_it_wants_to_be() -> None:
    bench = Bench([ModelBusy("no", retry_after=20.0), "yes"], luck=0.0)
    assert bench.ask().text == "yes"
    assert bench.clock.waits == [20.0]


def test_a_wait_past_the_deadline_is_not_begun() -> None:
    bench = Bench([ModelBusy("no", retry_after=901.0), "yes"])
    with pytest.raises(ModelBusy) as caught:
        bench.ask()
    assert caught.value.retry_after == 901.0
    assert bench.clock.waits == []
    assert bench.asked == [1]


def test_the_tries_are_bounded_and_said() -> None:
    bench = Bench([ModelBusy(f"no {number}") for number in range(9)], policy=RetryPolicy(tries=3))
    with pytest.raises(ModelBusy, match=r"^no 2, 3 times$"):
        bench.ask()
    assert bench.asked == [3]


def test_the_next_model_is_asked_and_named() -> None:
    bench = Bench([ModelBusy("no")] * 2, [ModelRefused("no such model")], ["yes"], policy=RetryPolicy(tries=2))
    answer = bench.ask()
    assert (answer.text, answer.model) == ("yes", "openai:third-local")
    assert bench.asked == [2, 1, 1]


def test_a_long_wait_goes_to_the_next_model_instead() -> None:
    bench = Bench([ModelBusy("no", retry_after=31.0), "late"], ["yes"])
    assert bench.ask().text == "yes"
    assert bench.clock.waits == []


def test_where_nobody_answers_the_first_error_is_raised_and_all_are_told() -> None:
    bench = Bench([ModelGarbled("odd")] * 2, [ModelRefused("bad key")], policy=RetryPolicy(tries=2))
    with pytest.raises(ModelGarbled, match=r"^odd, 2 times; bad key$"):
        bench.ask()


@pytest.mark.parametrize("fault", [AnswerFault.truncated, AnswerFault.refused, AnswerFault.empty])
def test_an_answer_that_cannot_be_used_is_an_answer(fault: AnswerFault) -> None:
    bench = Bench([Answer(text="half", model="m", fault=fault)], ["other"])
    assert bench.ask().fault is fault
    assert bench.asked == [1, 0]


def test_the_answer_holds_what_the_failed_calls_before_it_used() -> None:
    lost = ModelGarbled("cut", usage=Usage(input_tokens=100, output_tokens=50, cached_tokens=10, usd=0.5))
    said = Answer(text="yes", model="m", usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=2, usd=0.25))
    usage = Bench([lost, ModelBusy("no"), said]).ask().usage
    assert usage == Usage(input_tokens=107, output_tokens=53, cached_tokens=12, usd=0.75)


def test_an_unknown_price_stays_unknown_and_a_known_part_is_kept() -> None:
    unknown = Answer(text="yes", model="m", usage=Usage(input_tokens=7, usd=None))
    assert Bench([ModelBusy("no"), unknown]).ask().usage.usd is None
    known = ModelGarbled("cut", usage=Usage(input_tokens=1, usd=0.5))
    assert Bench([known, unknown]).ask().usage.usd == 0.5


def test_an_error_holds_all_that_was_used() -> None:
    lost = [ModelGarbled("cut", usage=Usage(input_tokens=100, usd=0.5)) for _ in range(3)]
    with pytest.raises(ModelGarbled) as caught:
        Bench(lost, policy=RetryPolicy(tries=3)).ask()
    assert caught.value.usage == Usage(input_tokens=300, usd=1.5)


def test_a_question_ends_at_its_own_deadline() -> None:
    class Hangs:
        async def ask(self, ask: Ask) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError(ask)

    still = TimeAndChance(now=lambda: 0.0)  # on a busy machine the time could run out before any model is asked
    gateway = Gateway(lambda _: [ModelRoute("openai:x-local", Hangs())], RetryPolicy(patience=0.05, tries=1), still)
    with pytest.raises(ModelTimeout, match="time limit of the question") as caught:
        asyncio.run(gateway.ask(ASK))
    assert caught.value.usage.input_tokens + caught.value.usage.output_tokens == MOST


def test_nobody_is_asked_when_the_time_is_over() -> None:
    class Late(ScriptedModel):
        async def ask(self, ask: Ask) -> Answer:
            bench.clock.time += 1000
            return await super().ask(ask)

    bench = Bench([], ["never"])
    bench.models[0] = Late([ModelBusy("no")] * 2)
    lanes = [ModelRoute(f"openai:{number}-local", model) for number, model in enumerate(bench.models)]
    gateway = Gateway(lambda _: lanes, None, TimeAndChance(now=bench.clock.now, sleep=bench.clock.sleep))
    with pytest.raises(ModelBusy, match=r"^no; openai:1-local was not asked: the time"):
        asyncio.run(gateway.ask(ASK))
    assert bench.asked == [1, 0]


def test_a_model_that_fails_too_often_is_left_alone_then_tried_once() -> None:
    policy = RetryPolicy(tries=2, failures=4, rest=60.0, longest_wait=5.0)
    bench = Bench([ModelBusy("no")] * 5 + ["back", "still"], ["a", "b", "c", "d"], policy=policy)
    assert [bench.ask().text for _ in range(3)] == ["a", "b", "c"]
    assert bench.asked[0] == 4  # the third question went straight to the second model
    bench.clock.time += 61
    assert bench.ask().text == "d"
    assert bench.asked[0] == 5  # the trial call failed: the model rests again
    bench.clock.time += 61
    assert [bench.ask().text for _ in range(2)] == ["back", "still"]


def test_without_another_model_the_rest_is_waited_for() -> None:
    policy = RetryPolicy(tries=4, failures=2, rest=60.0)
    bench = Bench([ModelBusy("no")] * 2 + ["back"], policy=policy)
    assert bench.ask().text == "back"
    assert bench.clock.waits == [1.0, 60.0]


def test_while_a_tripped_model_is_tried_others_do_not_ask_it() -> None:
    class Slow(ScriptedModel):
        async def ask(self, ask: Ask) -> Answer:
            for _ in range(5):
                await asyncio.sleep(0)
            return await super().ask(ask)

    async def both() -> list[Answer]:
        return list(await asyncio.gather(gateway.ask(ASK), gateway.ask(ASK)))

    clock, first = Clock(), Slow([ModelBusy("no"), "back"])
    lanes = [ModelRoute("openai:first-local", first), ModelRoute("openai:second-local", ScriptedModel(["a", "b"]))]
    policy = RetryPolicy(tries=1, failures=1, rest=60.0)
    gateway = Gateway(lambda _: lanes, policy, TimeAndChance(now=clock.now, sleep=clock.sleep))
    assert asyncio.run(gateway.ask(ASK)).text == "a"
    clock.time = 61
    assert [answer.text for answer in asyncio.run(both())] == ["back", "b"]


def test_a_refusal_does_not_trip_the_model() -> None:
    policy = RetryPolicy(failures=2)
    bench = Bench([ModelRefused("too long")] * 3 + ["yes"], policy=policy)
    for _ in range(3):
        with pytest.raises(ModelRefused):
            bench.ask()
    assert bench.ask().text == "yes"


def test_only_so_many_calls_at_a_time() -> None:
    class Counting:
        now, most = 0, 0

        async def ask(self, ask: Ask) -> Answer:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(3):
                await asyncio.sleep(0)
            self.now -= 1
            return Answer(text=ask.question, model="m")

    async def many(gateway: Gateway) -> int:
        return len(await asyncio.gather(*(gateway.ask(ASK) for _ in range(9))))

    for at_once, most in ((2, 2), (None, 9)):
        model = Counting()
        lane = ModelRoute("openai:x-local", model, options=RouteOptions(at_once=at_once))
        gateway = Gateway(lambda _, lane=lane: [lane])
        assert [asyncio.run(many(gateway)) for _ in range(2)] == [9, 9]  # in two event loops
        assert model.most == most


def test_a_place_that_never_comes_free_is_told() -> None:
    async def asked_beside_another_call(gateway: Gateway) -> None:
        slot = lane.slot()
        assert slot is not None
        async with slot:
            await gateway.ask(ASK)

    lane = ModelRoute("openai:x-local", ScriptedModel([]), options=RouteOptions(at_once=1))
    gateway = Gateway(lambda _: [lane], RetryPolicy(patience=0.05, tries=1), TimeAndChance(now=lambda: 0.0))
    with pytest.raises(ModelBusy, match="busy with other calls") as caught:
        asyncio.run(asked_beside_another_call(gateway))
    assert caught.value.usage == Usage()


def test_calls_are_spread_so_that_the_tokens_of_a_minute_suffice() -> None:
    said = Answer(text="x", model="m", usage=Usage(input_tokens=100, output_tokens=900))
    bench = Bench([said] * 4, options=RouteOptions(tokens_a_minute=2 * MOST))
    for _ in range(4):
        bench.ask()
    assert bench.clock.waits == [pytest.approx(30), pytest.approx(30)]


def test_tokens_that_were_not_used_can_be_used_by_the_next() -> None:
    said = Answer(text="x", model="m", usage=Usage(input_tokens=100, output_tokens=100))
    bench = Bench([said] * 6, options=RouteOptions(tokens_a_minute=2 * MOST))
    for _ in range(6):
        bench.ask()
    assert bench.clock.waits == []


def test_a_rate_that_does_not_come_in_time_is_told_and_nothing_is_sent() -> None:
    said = Answer(text="x", model="m", usage=Usage(input_tokens=100, output_tokens=900))
    bench = Bench([said] * 2, options=RouteOptions(tokens_a_minute=MOST), policy=RetryPolicy(patience=30))
    bench.ask()
    with pytest.raises(ModelBusy, match="tokens per minute") as caught:
        bench.ask()
    assert "tokens_a_minute" in caught.value.remedy
    assert bench.asked == [1]


def test_the_options_of_a_model_outrank_the_question() -> None:
    bench = Bench(["x", "y"], options=RouteOptions(temperature=0.7, max_tokens=100))
    bench.ask()
    bench.ask(ASK.model_copy(update={"max_tokens": 50}))
    assert [(ask.temperature, ask.max_tokens) for ask in bench.models[0].asks] == [(0.7, 100), (0.7, 50)]


def under(bench: Bench, ledger: RunLedger, ask: Ask = ASK) -> Answer:
    return asyncio.run(bench.gateway.under(ledger).ask(ask))


def ledger_of(tokens: int | None = None, usd: float | None = None) -> RunLedger:
    return RunLedger(Limits(tokens=tokens, usd=usd), Spend())


def test_each_call_is_held_back_for_and_a_failed_one_that_used_nothing_is_given_back() -> None:
    ledger = ledger_of(tokens=MOST)
    answer = under(Bench([ModelBusy("no")] * 3 + ["yes"]), ledger)
    assert answer.text == "yes"


def test_what_failed_calls_used_counts_before_the_next_is_made() -> None:
    lost = Usage(input_tokens=60, output_tokens=40)
    bench = Bench([ModelGarbled("cut", usage=lost), ModelGarbled("cut", usage=lost), "never"])
    answer = under(bench, ledger_of(tokens=MOST + 150))
    assert (answer.fault, answer.text) == (AnswerFault.budget, "")
    assert answer.usage == Usage(input_tokens=120, output_tokens=80)
    assert bench.asked == [2]


def test_the_dollar_cap_binds_for_each_call_by_the_rates_of_the_profile() -> None:
    rates = Rates(input=1.0, output=10.0)
    most = (100 * 1.0 + 900 * 10.0) / 1e6
    lost = ModelGarbled("cut", usage=Usage(input_tokens=100, output_tokens=900, usd=most))
    fits, does_not = (Bench([lost, "yes"], profile=Profile(rates=rates)) for _ in range(2))
    assert under(fits, ledger_of(usd=2 * most + 1e-9)).text == "yes"
    assert under(does_not, ledger_of(usd=2 * most - 1e-9)).fault is AnswerFault.budget


def test_a_model_whose_cache_is_written_to_is_held_back_for_at_that_price() -> None:
    rates = Rates(input=1.0, output=10.0, cached=0.1, written=1.25)
    most = (100 * 1.25 + 900 * 10.0) / 1e6
    for cap, fault in ((most + 1e-9, None), (most - 1e-9, AnswerFault.budget)):
        bench = Bench(["yes"], profile=Profile(rates=rates, caching=True))
        assert under(bench, ledger_of(usd=cap)).fault is fault


class Hangs:
    async def ask(self, ask: Ask) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError(ask)


def test_a_question_that_was_broken_off_may_have_used_all() -> None:
    async def cancelled(ledger: RunLedger) -> None:
        lane = ModelRoute("openai:x-local", Hangs())
        task = asyncio.create_task(Gateway(lambda _: [lane]).under(ledger).ask(ASK))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    ledger = ledger_of(tokens=2 * MOST - 1)
    asyncio.run(cancelled(ledger))
    assert under(Bench(["no"]), ledger).fault is AnswerFault.budget


def test_what_is_open_at_the_end_of_the_runs_time_is_broken_off_and_may_have_used_all() -> None:
    lane = ModelRoute("openai:x-local", Hangs())
    ledger = RunLedger(Limits(minutes=1), Spend(seconds=59.98))
    answer = asyncio.run(Gateway(lambda _: [lane]).under(ledger).ask(ASK))
    assert (answer.fault, answer.asked, answer.usage.tokens) == (AnswerFault.budget, True, MOST)


def timed(bench: Bench, seconds: float) -> RunLedger:
    return RunLedger(Limits(minutes=seconds / 60), Spend(), bench.clock.now)


def test_a_server_that_is_down_is_named_even_where_the_runs_time_ends_first() -> None:
    bench = Bench([ModelUnreachable("cannot connect to 127.0.0.1:9")] * 99)
    with pytest.raises(ModelUnreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        under(bench, timed(bench, 2.0))


def test_a_server_that_is_down_is_named_even_where_the_limits_allow_no_other_try() -> None:
    bench = Bench([ModelUnreachable("cannot connect to 127.0.0.1:9", usage=Usage(input_tokens=MOST))] * 99)
    with pytest.raises(ModelUnreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        under(bench, ledger_of(tokens=2 * MOST - 1))


def test_a_server_that_is_down_is_named_even_where_the_runs_time_breaks_off_a_try() -> None:
    class Vanishes(Hangs):
        tries = 0

        async def ask(self, ask: Ask) -> Answer:
            self.tries += 1
            if self.tries == 1:
                raise ModelUnreachable("cannot connect to 127.0.0.1:9")
            return await super().ask(ask)

    lane = ModelRoute("openai:x-local", Vanishes())
    ledger = RunLedger(Limits(minutes=1), Spend(seconds=59.9))
    gateway = Gateway(lambda _: [lane], chance=TimeAndChance(luck=lambda: 0.0))
    with pytest.raises(ModelUnreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        asyncio.run(gateway.under(ledger).ask(ASK))


def test_a_model_that_can_be_asked_again_only_after_the_runs_time_is_not_waited_for() -> None:
    bench = Bench([ModelBusy("no", retry_after=20.0), "yes"])
    answer = under(bench, timed(bench, 20.0))
    assert (answer.fault, answer.asked, bench.clock.waits) == (AnswerFault.budget, False, [])
    bench = Bench([ModelBusy("no", retry_after=20.0), "yes"])
    assert under(bench, timed(bench, 20.1)).text == "yes"


@pytest.mark.parametrize("failure", [ModelBusy("quota", retry_after=3600.0), ModelRefused("bad key")])
def test_what_more_time_would_not_mend_is_said_as_it_is(failure: ModelError) -> None:
    bench = Bench([failure])
    with pytest.raises(type(failure), match=str(failure)):
        under(bench, timed(bench, 20.0))
