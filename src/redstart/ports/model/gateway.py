"""The only retry loop: every question to a model whose calls can fail goes through it."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import NamedTuple

from redstart.core.chat import Answer, AnswerFault, Ask, Usage
from redstart.core.errors import BudgetExceeded, ModelBusy, ModelError, ModelTimeout, ModelUnreachable
from redstart.ports.model.budget import reserve_usage
from redstart.ports.model.port import Model, TimedLedger
from redstart.ports.model.prices import add_usage
from redstart.ports.model.routes import CircuitBreaker, LocalRateLimits, ModelRoute, RateLimits


class RetryPolicy(NamedTuple):
    """Limits of retries. Times are in seconds."""

    max_calls: int = 6
    """The most calls to one model for one question."""
    timeout: float = 900.0
    """The time limit of the whole question, including waits."""
    first_wait: float = 1.0
    """The longest wait after the first failure. It doubles with each further failure."""
    longest_wait: float = 30.0
    """The longest wait before a model is asked again, unless it asks for more and there is no other model."""
    failures: int = 8
    """The number of consecutive failures, of any questions, after which a model is not asked for a while."""
    cooldown: float = 60.0
    """How long a failing model is not asked."""


@dataclass(frozen=True)
class TimeAndChance:
    """Time and randomness, replaceable in tests."""

    now: Callable[[], float] = time.monotonic
    clock: Callable[[], float] = time.time
    """The clock for state that is shared with other machines."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    get_random: Callable[[], float] = random.random
    """Returns a number between 0 and 1."""


class Gateway:
    """A model that represents several: it asks the first model that `choose` returns, retries, then asks the next.

    Temporary failures (an overload, a broken connection, a timeout, half an answer) are retried after a random wait,
    longer each time, and not before the endpoint allows it. After a permanent failure, or if all tries fail, the next
    model is asked. The answer names the model that gave it, and its usage includes that of the failed calls. If no
    model answers, the error is that of the first model, with the total usage.

    Several questions may be asked at once. `under` returns the same model with a ledger: then each call is reserved
    and settled, and if one does not fit, the answer has the fault `budget`. It also has that fault if the ledger's time
    ends before the question's own; open calls are then interrupted. If no model could be reached by then, the error
    says so.
    """

    def __init__(
        self,
        choose: Callable[[Ask], Sequence[ModelRoute]],
        policy: RetryPolicy | None = None,
        chance: TimeAndChance | None = None,
        rates: RateLimits | None = None,
    ) -> None:
        self._choose = choose
        self._policy = policy or RetryPolicy()
        self._chance = chance or TimeAndChance()
        self._breakers: dict[str, CircuitBreaker] = {}
        self._rates = rates or LocalRateLimits()
        self._rate_time = self._chance.clock if rates else self._chance.now

    async def ask(self, ask: Ask) -> Answer:
        return await self._answer(ask, _NoLedger())

    def with_ledger(self, ledger: TimedLedger) -> Model:
        return _Under(self._answer, ledger)

    async def _answer(self, ask: Ask, ledger: TimedLedger) -> Answer:
        course = _Course(self._chance.now(), self._policy.timeout, ledger.get_remaining_seconds())
        routes = list(self._choose(ask))
        for number, route in enumerate(routes):
            try:
                answer = await self._try_route(
                    route, route.adapt(ask), ledger, course, is_last=number == len(routes) - 1
                )
            except BudgetExceeded:
                if course.is_unreachable():
                    raise course.build_error() from None
                return Answer(text="", model=route.name, fault=AnswerFault.budget, usage=add_usage(course.used))
            if answer is not None:
                return answer.model_copy(update={"usage": add_usage([*course.used, answer.usage])})
        if course.is_out_of_budget(self._chance.now()) and not course.is_unreachable():
            return Answer(text="", model=routes[0].name, fault=AnswerFault.budget, usage=add_usage(course.used))
        raise course.build_error()

    async def _try_route(
        self, route: ModelRoute, ask: Ask, ledger: TimedLedger, course: _Course, *, is_last: bool
    ) -> Answer | None:
        """Ask this model, with retries. Returns None if the next model should be asked."""
        failures: list[ModelError] = []
        while len(failures) < self._policy.max_calls:
            now = self._chance.now()
            wait, remaining = self._wait(route, failures), course.get_remaining_seconds(now)
            if wait >= remaining:
                course.record_miss(now + wait)
            if wait >= remaining or (wait > self._policy.longest_wait and not is_last):
                if not failures:
                    course.note(route, _make_not_asked_error(route, remaining), 0)
                break
            if wait:
                await self._chance.sleep(wait)
            try:
                return await self._call_once(route, ask, ledger, course)
            except ModelError as error:
                failures.append(error)
                course.used.append(error.usage)
                course.note(route, self._pick_failure(failures, course), len(failures))
                if not error.is_transient:
                    break
        return None

    def _pick_failure(self, failures: list[ModelError], course: _Course) -> ModelError:
        """Return the last failure, or the one before it if the last try was interrupted by the time limit."""
        is_broken_off = isinstance(failures[-1], ModelTimeout) and course.get_remaining_seconds(self._chance.now()) <= 0
        return failures[-2] if is_broken_off and len(failures) > 1 else failures[-1]

    def _wait(self, route: ModelRoute, failures: list[ModelError]) -> float:
        """Return the seconds to wait before the next try.

        Full jitter: a random time up to a bound that doubles, so that calls that failed together do not retry together.
        """
        breaker_wait = self._get_breaker(route).wait(self._chance.now())
        if not failures:
            return breaker_wait
        policy, requested = self._policy, failures[-1].retry_after or 0.0
        bound = min(policy.longest_wait, policy.first_wait * 2 ** (len(failures) - 1))
        return max(self._chance.get_random() * bound, requested, breaker_wait)

    async def _call_once(self, route: ModelRoute, ask: Ask, ledger: TimedLedger, course: _Course) -> Answer:
        breaker, max_usage = self._get_breaker(route), route.get_max_usage(ask)
        async with AsyncExitStack() as stack:
            if slot := route.get_slot():
                await self._in_turn(route, slot, stack, course)
            used = stack.enter_context(reserve_usage(ledger, max_usage))
            await self._wait_for_rate(route, max_usage, course)
            stack.enter_context(breaker.wrap_call())
            try:
                answer = await _ask_within(course.get_remaining_seconds(self._chance.now()), route, ask, max_usage)
            except ModelError as error:
                if error.is_transient:
                    breaker.record_failure(self._chance.now())
                self._return_unused(route, max_usage, error.usage)
                raise
            used.usage = answer.usage
            breaker.record_success()
            self._return_unused(route, max_usage, answer.usage)
            return answer

    async def _in_turn(
        self, route: ModelRoute, slot: asyncio.Semaphore, stack: AsyncExitStack, course: _Course
    ) -> None:
        """Wait for a free slot for the call. Raises `ModelBusy` if there is none before the deadline."""
        try:
            async with asyncio.timeout(course.get_remaining_seconds(self._chance.now())):
                await slot.acquire()
        except TimeoutError:
            raise ModelBusy(f"{route.name} was busy with other calls until the deadline") from None
        stack.callback(slot.release)

    async def _wait_for_rate(self, route: ModelRoute, max_usage: Usage, course: _Course) -> None:
        """Wait until the model's rate limits allow the call. Raises `ModelBusy` if that is after the deadline."""
        now = self._rate_time()
        rates = _list_rates(route, max_usage)
        waits = [(self._rates.take(rate.name, rate.tokens, rate.a_minute, now), rate) for rate in rates]
        wait, slowest = max(waits, key=lambda item: item[0], default=(0.0, None))
        if slowest and wait >= course.get_remaining_seconds(self._chance.now()):
            for rate in rates:
                self._rates.give_back(rate.name, rate.tokens, rate.a_minute, now)
            raise ModelBusy(
                f"{route.name} cannot be asked for {wait:.0f} s because of its limit of {slowest.unit} per minute",
                remedy=f"raise its {slowest.unit}_a_minute, or use another model",
                retry_after=wait,
            )
        if wait:
            await self._chance.sleep(wait)

    def _return_unused(self, route: ModelRoute, max_usage: Usage, used: Usage) -> None:
        if a_minute := route.options.tokens_a_minute:
            self._rates.give_back(route.name, max_usage.tokens - used.tokens, a_minute, self._rate_time())

    def _get_breaker(self, route: ModelRoute) -> CircuitBreaker:
        return self._breakers.setdefault(route.name, CircuitBreaker(self._policy.failures, self._policy.cooldown))


class _Rate(NamedTuple):
    """The share of one rate limit that a call uses."""

    name: str
    unit: str
    tokens: int
    a_minute: int


def _list_rates(route: ModelRoute, max_usage: Usage) -> list[_Rate]:
    options, rates = route.options, list[_Rate]()
    if options.tokens_a_minute:
        rates.append(_Rate(route.name, "tokens", max_usage.tokens, options.tokens_a_minute))
    if options.requests_a_minute:
        rates.append(_Rate(f"{route.name} requests", "requests", 1, options.requests_a_minute))
    return rates


class _Course:
    """The progress of one question: its deadline, failures and usage."""

    def __init__(self, start: float, patience: float, budget: float) -> None:
        self._patient_until = start + patience
        self._ends = min(self._patient_until, start + budget)
        self._missed = False
        self._failed: dict[str, tuple[ModelError, int]] = {}
        self.used: list[Usage] = []

    def get_remaining_seconds(self, now: float) -> float:
        return max(self._ends - now, 0.0)

    def record_miss(self, moment: float) -> None:
        """Record that a model could be asked only at this moment, which is after the deadline."""
        self._missed = self._missed or moment < self._patient_until

    def is_out_of_budget(self, now: float) -> bool:
        """Return whether the question has no answer because the run's time is over, while its own time is not."""
        return self._missed or self._ends <= now < self._patient_until

    def is_unreachable(self) -> bool:
        """Return whether no model could be reached. Then the error reports that instead of the time limit."""
        errors = [error for error, _ in self._failed.values()]
        return bool(errors) and all(isinstance(error, ModelUnreachable) for error in errors)

    def note(self, route: ModelRoute, error: ModelError, tries: int) -> None:
        self._failed[route.name] = (error, tries)

    def build_error(self) -> ModelError:
        """Build the error: the first model's last error, followed by those of the other models."""
        (first_error, tries), *other_failures = self._failed.values()
        text = str(first_error) + (f", {tries} times" if tries > 1 else "")
        message = "; ".join((text, *(str(error) for error, _ in other_failures)))
        return type(first_error)(
            message, remedy=first_error.remedy, retry_after=first_error.retry_after, usage=add_usage(self.used)
        )


class _Under:
    def __init__(self, answer: Callable[[Ask, TimedLedger], Awaitable[Answer]], ledger: TimedLedger) -> None:
        self._answer, self._ledger = answer, ledger

    async def ask(self, ask: Ask) -> Answer:
        return await self._answer(ask, self._ledger)


class _NoLedger:
    """A ledger without limits."""

    def get_remaining_seconds(self) -> float:
        return math.inf

    def reserve(self, usd: float | None, tokens: int) -> None: ...

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None: ...


def _make_not_asked_error(route: ModelRoute, remaining: float) -> ModelError:
    if remaining <= 0:
        return ModelTimeout(f"{route.name} was not asked: the time limit of the question was reached")
    return ModelBusy(f"{route.name} was not asked: it failed too often recently")


async def _ask_within(seconds: float, route: ModelRoute, ask: Ask, max_usage: Usage) -> Answer:
    if seconds <= 0:
        raise _make_not_asked_error(route, seconds)
    try:
        async with asyncio.timeout(seconds):
            return await route.model.ask(ask)
    except TimeoutError:
        raise ModelTimeout(
            f"{route.name} did not answer before the time limit of the question",
            remedy="try again, or raise the time limit of a question",
            usage=max_usage,
        ) from None
