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
from redstart.ports.model.port import Profile, Rates
from redstart.ports.model.routes import ModelRoute, RouteOptions
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
        jitter: float = 1.0,
        options: RouteOptions | None = None,
        profile: Profile | None = None,
    ) -> None:
        self.clock = Clock()
        names = ["openai:first-local", "openai:second-local", "openai:third-local"]
        self.models = [ScriptedModel(script, name=name) for script, name in zip(scripts, names, strict=False)]
        routes = [
            ModelRoute(name, model, options=options, profile=profile)
            for name, model in zip(names, self.models, strict=False)
        ]
        chance = TimeAndChance(now=self.clock.now, sleep=self.clock.sleep, get_random=lambda: jitter)
        self.gateway = Gateway(lambda _: routes, policy, chance)

    def ask(self, ask: Ask = ASK) -> Answer:
        return asyncio.run(self.gateway.ask(ask))

    @property
    def call_counts(self) -> list[int]:
        return [len(model.questions) for model in self.models]


PASSING = [ModelBusy, ModelUnreachable, ModelTimeout, ModelGarbled]


@pytest.mark.parametrize("kind", PASSING)
def test_transient_error_is_retried(kind: type[ModelError]) -> None:
    bench = Bench([kind("no"), kind("no"), "yes"])
    answer = bench.ask()
    assert (answer.text, answer.model) == ("yes", "openai:first-local")
    assert bench.clock.waits == [1.0, 2.0]


@pytest.mark.parametrize("kind", [ModelRefused, ModelError])
def test_permanent_error_is_not_retried(kind: type[ModelError]) -> None:
    bench = Bench([kind("bad key", remedy="check the key")])
    with pytest.raises(kind, match=r"^bad key$") as caught:
        bench.ask()
    assert caught.value.remedy == "check the key"
    assert bench.call_counts == [1]
    assert bench.clock.waits == []


def test_waits_double_up_to_a_limit_and_jitter_shortens_them() -> None:
    policy = RetryPolicy(max_calls=8, longest_wait=10.0, failures=99)
    full, none = (Bench([ModelBusy("no")] * 7 + ["yes"], policy=policy, jitter=jitter) for jitter in (1.0, 0.0))
    assert [bench.ask().text for bench in (full, none)] == ["yes", "yes"]
    assert full.clock.waits == [1, 2, 4, 8, 10, 10, 10]
    assert none.clock.waits == []


def test_same_seed_gives_the_same_waits() -> None:
    def collect_waits(seed: int) -> list[float]:
        clock, rng = Clock(), random.Random(seed)
        route = ModelRoute("openai:a-local", ScriptedModel([ModelBusy("no")] * 4 + ["yes"]))
        chance = TimeAndChance(now=clock.now, sleep=clock.sleep, get_random=rng.random)
        asyncio.run(Gateway(lambda _: [route], chance=chance).ask(ASK))
        return clock.waits

    assert collect_waits(1) == collect_waits(1) != collect_waits(2)
    assert all(0 <= wait <= 2**number for number, wait in enumerate(collect_waits(1)))


def test_retry_after_is_respected() -> None:
    bench = Bench([ModelBusy("no", retry_after=20.0), "yes"], jitter=0.0)
    assert bench.ask().text == "yes"
    assert bench.clock.waits == [20.0]


def test_wait_past_the_deadline_is_not_started() -> None:
    bench = Bench([ModelBusy("no", retry_after=901.0), "yes"])
    with pytest.raises(ModelBusy) as caught:
        bench.ask()
    assert caught.value.retry_after == 901.0
    assert bench.clock.waits == []
    assert bench.call_counts == [1]


def test_tries_are_limited_and_reported() -> None:
    bench = Bench([ModelBusy(f"no {number}") for number in range(9)], policy=RetryPolicy(max_calls=3))
    with pytest.raises(ModelBusy, match=r"^no 2, 3 times$"):
        bench.ask()
    assert bench.call_counts == [3]


def test_next_model_is_asked_and_named() -> None:
    bench = Bench([ModelBusy("no")] * 2, [ModelRefused("no such model")], ["yes"], policy=RetryPolicy(max_calls=2))
    answer = bench.ask()
    assert (answer.text, answer.model) == ("yes", "openai:third-local")
    assert bench.call_counts == [2, 1, 1]


def test_long_wait_falls_back_to_the_next_model() -> None:
    bench = Bench([ModelBusy("no", retry_after=31.0), "late"], ["yes"])
    assert bench.ask().text == "yes"
    assert bench.clock.waits == []


def test_first_error_is_raised_and_all_are_listed_when_every_model_fails() -> None:
    bench = Bench([ModelGarbled("odd")] * 2, [ModelRefused("bad key")], policy=RetryPolicy(max_calls=2))
    with pytest.raises(ModelGarbled, match=r"^odd, 2 times; bad key$"):
        bench.ask()


@pytest.mark.parametrize("fault", [AnswerFault.truncated, AnswerFault.refused, AnswerFault.empty])
def test_unusable_answer_does_not_trigger_a_fallback(fault: AnswerFault) -> None:
    bench = Bench([Answer(text="half", model="m", fault=fault)], ["other"])
    assert bench.ask().fault is fault
    assert bench.call_counts == [1, 0]


def test_answer_includes_usage_of_earlier_failed_calls() -> None:
    failure = ModelGarbled("cut", usage=Usage(input_tokens=100, output_tokens=50, cached_tokens=10, usd=0.5))
    answer = Answer(text="yes", model="m", usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=2, usd=0.25))
    usage = Bench([failure, ModelBusy("no"), answer]).ask().usage
    assert usage == Usage(input_tokens=107, output_tokens=53, cached_tokens=12, usd=0.75)


def test_unknown_price_stays_unknown_and_known_part_is_kept() -> None:
    unpriced_answer = Answer(text="yes", model="m", usage=Usage(input_tokens=7, usd=None))
    assert Bench([ModelBusy("no"), unpriced_answer]).ask().usage.usd is None
    priced_failure = ModelGarbled("cut", usage=Usage(input_tokens=1, usd=0.5))
    assert Bench([priced_failure, unpriced_answer]).ask().usage.usd == 0.5


def test_error_includes_all_usage() -> None:
    failures = [ModelGarbled("cut", usage=Usage(input_tokens=100, usd=0.5)) for _ in range(3)]
    with pytest.raises(ModelGarbled) as caught:
        Bench(failures, policy=RetryPolicy(max_calls=3)).ask()
    assert caught.value.usage == Usage(input_tokens=300, usd=1.5)


def test_question_ends_at_its_own_deadline() -> None:
    class Hangs:
        async def ask(self, ask: Ask) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError(ask)

    still = TimeAndChance(now=lambda: 0.0)  # on a busy machine the time could run out before any model is asked
    gateway = Gateway(lambda _: [ModelRoute("openai:x-local", Hangs())], RetryPolicy(timeout=0.05, max_calls=1), still)
    with pytest.raises(ModelTimeout, match="time limit of the question") as caught:
        asyncio.run(gateway.ask(ASK))
    assert caught.value.usage.input_tokens + caught.value.usage.output_tokens == MOST


def test_no_model_is_asked_after_the_deadline() -> None:
    class Late(ScriptedModel):
        async def ask(self, ask: Ask) -> Answer:
            bench.clock.time += 1000
            return await super().ask(ask)

    bench = Bench([], ["never"])
    bench.models[0] = Late([ModelBusy("no")] * 2)
    routes = [ModelRoute(f"openai:{number}-local", model) for number, model in enumerate(bench.models)]
    gateway = Gateway(lambda _: routes, None, TimeAndChance(now=bench.clock.now, sleep=bench.clock.sleep))
    with pytest.raises(ModelBusy, match=r"^no; openai:1-local was not asked: the time"):
        asyncio.run(gateway.ask(ASK))
    assert bench.call_counts == [1, 0]


def test_model_that_fails_too_often_rests_and_is_then_tried_once() -> None:
    policy = RetryPolicy(max_calls=2, failures=4, cooldown=60.0, longest_wait=5.0)
    bench = Bench([ModelBusy("no")] * 5 + ["back", "still"], ["a", "b", "c", "d"], policy=policy)
    assert [bench.ask().text for _ in range(3)] == ["a", "b", "c"]
    assert bench.call_counts[0] == 4  # the third question went straight to the second model
    bench.clock.time += 61
    assert bench.ask().text == "d"
    assert bench.call_counts[0] == 5  # the trial call failed: the model rests again
    bench.clock.time += 61
    assert [bench.ask().text for _ in range(2)] == ["back", "still"]


def test_rest_is_waited_out_without_a_fallback_model() -> None:
    policy = RetryPolicy(max_calls=4, failures=2, cooldown=60.0)
    bench = Bench([ModelBusy("no")] * 2 + ["back"], policy=policy)
    assert bench.ask().text == "back"
    assert bench.clock.waits == [1.0, 60.0]


def test_tripped_model_serves_only_its_trial_call() -> None:
    class Slow(ScriptedModel):
        async def ask(self, ask: Ask) -> Answer:
            for _ in range(5):
                await asyncio.sleep(0)
            return await super().ask(ask)

    async def ask_twice() -> list[Answer]:
        return list(await asyncio.gather(gateway.ask(ASK), gateway.ask(ASK)))

    clock, first_model = Clock(), Slow([ModelBusy("no"), "back"])
    routes = [
        ModelRoute("openai:first-local", first_model),
        ModelRoute("openai:second-local", ScriptedModel(["a", "b"])),
    ]
    policy = RetryPolicy(max_calls=1, failures=1, cooldown=60.0)
    gateway = Gateway(lambda _: routes, policy, TimeAndChance(now=clock.now, sleep=clock.sleep))
    assert asyncio.run(gateway.ask(ASK)).text == "a"
    clock.time = 61
    assert [answer.text for answer in asyncio.run(ask_twice())] == ["back", "b"]


def test_refusal_does_not_trip_the_model() -> None:
    policy = RetryPolicy(failures=2)
    bench = Bench([ModelRefused("too long")] * 3 + ["yes"], policy=policy)
    for _ in range(3):
        with pytest.raises(ModelRefused):
            bench.ask()
    assert bench.ask().text == "yes"


def test_concurrent_calls_are_limited() -> None:
    class Counting:
        now, most = 0, 0

        async def ask(self, ask: Ask) -> Answer:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(3):
                await asyncio.sleep(0)
            self.now -= 1
            return Answer(text=ask.question, model="m")

    async def ask_many(gateway: Gateway) -> int:
        return len(await asyncio.gather(*(gateway.ask(ASK) for _ in range(9))))

    for at_once, max_calls in ((2, 2), (None, 9)):
        model = Counting()
        route = ModelRoute("openai:x-local", model, options=RouteOptions(at_once=at_once))
        gateway = Gateway(lambda _, route=route: [route])
        assert [asyncio.run(ask_many(gateway)) for _ in range(2)] == [9, 9]  # in two event loops
        assert model.most == max_calls


def test_call_that_gets_no_free_slot_is_reported() -> None:
    async def ask_while_busy(gateway: Gateway) -> None:
        slot = route.get_slot()
        assert slot is not None
        async with slot:
            await gateway.ask(ASK)

    route = ModelRoute("openai:x-local", ScriptedModel([]), options=RouteOptions(at_once=1))
    gateway = Gateway(lambda _: [route], RetryPolicy(timeout=0.05, max_calls=1), TimeAndChance(now=lambda: 0.0))
    with pytest.raises(ModelBusy, match="busy with other calls") as caught:
        asyncio.run(ask_while_busy(gateway))
    assert caught.value.usage == Usage()


def test_calls_are_spread_to_keep_the_token_rate() -> None:
    answer = Answer(text="x", model="m", usage=Usage(input_tokens=100, output_tokens=900))
    bench = Bench([answer] * 4, options=RouteOptions(tokens_a_minute=2 * MOST))
    for _ in range(4):
        bench.ask()
    assert bench.clock.waits == [pytest.approx(30), pytest.approx(30)]


def test_unused_tokens_are_available_to_the_next_call() -> None:
    answer = Answer(text="x", model="m", usage=Usage(input_tokens=100, output_tokens=100))
    bench = Bench([answer] * 6, options=RouteOptions(tokens_a_minute=2 * MOST))
    for _ in range(6):
        bench.ask()
    assert bench.clock.waits == []


def test_unattainable_token_rate_is_reported_and_nothing_is_sent() -> None:
    answer = Answer(text="x", model="m", usage=Usage(input_tokens=100, output_tokens=900))
    bench = Bench([answer] * 2, options=RouteOptions(tokens_a_minute=MOST), policy=RetryPolicy(timeout=30))
    bench.ask()
    with pytest.raises(ModelBusy, match="tokens per minute") as caught:
        bench.ask()
    assert "tokens_a_minute" in caught.value.remedy
    assert bench.call_counts == [1]


def test_model_options_override_the_question() -> None:
    bench = Bench(["x", "y"], options=RouteOptions(temperature=0.7, max_tokens=100))
    bench.ask()
    bench.ask(ASK.model_copy(update={"max_tokens": 50}))
    assert [(ask.temperature, ask.max_tokens) for ask in bench.models[0].questions] == [(0.7, 100), (0.7, 50)]


def ask_under_ledger(bench: Bench, ledger: RunLedger, ask: Ask = ASK) -> Answer:
    return asyncio.run(bench.gateway.with_ledger(ledger).ask(ask))


def create_ledger(tokens: int | None = None, usd: float | None = None) -> RunLedger:
    return RunLedger(Limits(tokens=tokens, usd=usd), Spend())


def test_failed_call_without_usage_releases_its_reserve() -> None:
    ledger = create_ledger(tokens=MOST)
    answer = ask_under_ledger(Bench([ModelBusy("no")] * 3 + ["yes"]), ledger)
    assert answer.text == "yes"


def test_usage_of_failed_calls_counts_before_the_next_call() -> None:
    usage = Usage(input_tokens=60, output_tokens=40)
    bench = Bench([ModelGarbled("cut", usage=usage), ModelGarbled("cut", usage=usage), "never"])
    answer = ask_under_ledger(bench, create_ledger(tokens=MOST + 150))
    assert (answer.fault, answer.text) == (AnswerFault.budget, "")
    assert answer.usage == Usage(input_tokens=120, output_tokens=80)
    assert bench.call_counts == [2]


def test_dollar_limit_applies_to_each_call_at_the_profile_rates() -> None:
    rates = Rates(input=1.0, output=10.0)
    max_cost = (100 * 1.0 + 900 * 10.0) / 1e6
    failure = ModelGarbled("cut", usage=Usage(input_tokens=100, output_tokens=900, usd=max_cost))
    fits, does_not = (Bench([failure, "yes"], profile=Profile(rates=rates)) for _ in range(2))
    assert ask_under_ledger(fits, create_ledger(usd=2 * max_cost + 1e-9)).text == "yes"
    assert ask_under_ledger(does_not, create_ledger(usd=2 * max_cost - 1e-9)).fault is AnswerFault.budget


def test_cache_writes_are_reserved_at_their_own_price() -> None:
    rates = Rates(input=1.0, output=10.0, cached=0.1, written=1.25)
    max_cost = (100 * 1.25 + 900 * 10.0) / 1e6
    for cap, fault in ((max_cost + 1e-9, None), (max_cost - 1e-9, AnswerFault.budget)):
        bench = Bench(["yes"], profile=Profile(rates=rates, caching=True))
        assert ask_under_ledger(bench, create_ledger(usd=cap)).fault is fault


class Hangs:
    async def ask(self, ask: Ask) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError(ask)


def test_cancelled_question_counts_as_maximum_usage() -> None:
    async def ask_and_cancel(ledger: RunLedger) -> None:
        route = ModelRoute("openai:x-local", Hangs())
        task = asyncio.create_task(Gateway(lambda _: [route]).with_ledger(ledger).ask(ASK))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    ledger = create_ledger(tokens=2 * MOST - 1)
    asyncio.run(ask_and_cancel(ledger))
    assert ask_under_ledger(Bench(["no"]), ledger).fault is AnswerFault.budget


def test_call_cut_off_by_the_time_limit_counts_as_maximum_usage() -> None:
    route = ModelRoute("openai:x-local", Hangs())
    ledger = RunLedger(Limits(minutes=1), Spend(seconds=59.98))
    answer = asyncio.run(Gateway(lambda _: [route]).with_ledger(ledger).ask(ASK))
    assert (answer.fault, answer.was_asked, answer.usage.tokens) == (AnswerFault.budget, True, MOST)


def create_timed_ledger(bench: Bench, seconds: float) -> RunLedger:
    return RunLedger(Limits(minutes=seconds / 60), Spend(), bench.clock.now)


def test_unreachable_server_is_named_when_the_time_limit_ends_first() -> None:
    bench = Bench([ModelUnreachable("cannot connect to 127.0.0.1:9")] * 99)
    with pytest.raises(ModelUnreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        ask_under_ledger(bench, create_timed_ledger(bench, 2.0))


def test_unreachable_server_is_named_when_the_budget_allows_no_retry() -> None:
    bench = Bench([ModelUnreachable("cannot connect to 127.0.0.1:9", usage=Usage(input_tokens=MOST))] * 99)
    with pytest.raises(ModelUnreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        ask_under_ledger(bench, create_ledger(tokens=2 * MOST - 1))


def test_unreachable_server_is_named_when_the_time_limit_cuts_off_a_retry() -> None:
    class Vanishes(Hangs):
        tries = 0

        async def ask(self, ask: Ask) -> Answer:
            self.tries += 1
            if self.tries == 1:
                raise ModelUnreachable("cannot connect to 127.0.0.1:9")
            return await super().ask(ask)

    route = ModelRoute("openai:x-local", Vanishes())
    ledger = RunLedger(Limits(minutes=1), Spend(seconds=59.9))
    gateway = Gateway(lambda _: [route], chance=TimeAndChance(get_random=lambda: 0.0))
    with pytest.raises(ModelUnreachable, match=r"cannot connect to 127\.0\.0\.1:9"):
        asyncio.run(gateway.with_ledger(ledger).ask(ASK))


def test_retry_after_the_end_of_the_run_is_not_waited_for() -> None:
    bench = Bench([ModelBusy("no", retry_after=20.0), "yes"])
    answer = ask_under_ledger(bench, create_timed_ledger(bench, 20.0))
    assert (answer.fault, answer.was_asked, bench.clock.waits) == (AnswerFault.budget, False, [])
    bench = Bench([ModelBusy("no", retry_after=20.0), "yes"])
    assert ask_under_ledger(bench, create_timed_ledger(bench, 20.1)).text == "yes"


@pytest.mark.parametrize("failure", [ModelBusy("quota", retry_after=3600.0), ModelRefused("bad key")])
def test_permanent_error_is_reported_unchanged_near_the_time_limit(failure: ModelError) -> None:
    bench = Bench([failure])
    with pytest.raises(type(failure), match=str(failure)):
        ask_under_ledger(bench, create_timed_ledger(bench, 20.0))
