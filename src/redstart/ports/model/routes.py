"""Model routes of the gateway: options, rate limits and circuit breakers of each model."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from redstart.core.chat import Ask, Usage
from redstart.ports.model.port import Model, Profile
from redstart.ports.model.prices import estimate_max_usage


class RouteOptions(NamedTuple):
    """How one model is asked, in addition to the question's own parameters."""

    temperature: float | None = None
    """Replaces the temperature of the question."""
    max_tokens: int | None = None
    """The most tokens of an answer, even if the question allows more."""
    at_once: int | None = None
    """The most concurrent calls in one event loop."""
    tokens_a_minute: int | None = None
    """The most tokens in any minute. Before a call, the most that it can use is counted."""
    requests_a_minute: int | None = None
    """The most calls in any minute."""


class CircuitBreaker:
    """Decides whether to ask a model. After `limit` failures in a row it is not asked for `rest` seconds.

    After that time, one call may try. Its outcome decides whether others may follow.
    """

    def __init__(self, limit: int, rest: float) -> None:
        self._limit, self._cooldown = limit, rest
        self._failures = 0
        self._open_until = 0.0
        self._trying = False

    def wait(self, now: float) -> float:
        """Return the seconds until a call may be made; 0 means now."""
        if self._failures < self._limit:
            return 0.0
        if self._trying:
            return self._cooldown
        return max(self._open_until - now, 0.0)

    @contextmanager
    def wrap_call(self) -> Generator[None]:
        """Wrap a call. While a tripped model is tried, no other call is let through."""
        is_trial = self._failures >= self._limit
        self._trying = self._trying or is_trial
        try:
            yield
        finally:
            if is_trial:
                self._trying = False

    def record_failure(self, now: float) -> None:
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = now + self._cooldown

    def record_success(self) -> None:
        self._failures = 0


class TokenBucket:
    """A bucket that refills evenly and holds at most one minute's worth of tokens.

    A call takes its tokens, then waits until they are available.
    """

    def __init__(self, a_minute: int, now: float) -> None:
        self._size = float(a_minute)
        self._level = self._size
        self._updated_at = now

    def take(self, tokens: int, now: float) -> float:
        """Take tokens, at most one minute's worth. Return the seconds to wait before they may be used."""
        self._refill(now)
        self._level -= min(tokens, self._size)
        return max(-self._level, 0.0) * 60 / self._size

    def give_back(self, tokens: int, now: float) -> None:
        """Return unused tokens to the bucket. A negative number means that more were used than taken."""
        self._refill(now)
        self._level = min(self._level + tokens, self._size)

    def _refill(self, now: float) -> None:
        self._level = min(self._level + max(now - self._updated_at, 0.0) * self._size / 60, self._size)
        self._updated_at = max(now, self._updated_at)


class RateLimits(Protocol):
    """Token buckets by name. All processes that share them keep to one rate."""

    def take(self, name: str, tokens: int, a_minute: int, now: float) -> float:
        """Take tokens from the bucket with this name and size, as `TokenBucket.take` does."""
        ...

    def give_back(self, name: str, tokens: int, a_minute: int, now: float) -> None:
        """Return unused tokens, as `TokenBucket.give_back` does."""
        ...


class LocalRateLimits:
    """Rate limits of a single process."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, name: str, tokens: int, a_minute: int, now: float) -> float:
        return self._get_bucket(name, a_minute, now).take(tokens, now)

    def give_back(self, name: str, tokens: int, a_minute: int, now: float) -> None:
        self._get_bucket(name, a_minute, now).give_back(tokens, now)

    def _get_bucket(self, name: str, a_minute: int, now: float) -> TokenBucket:
        return self._buckets.setdefault(name, TokenBucket(a_minute, now))


class ModelRoute:
    """A model with its name, options and state. Several event loops may use it, one after another."""

    def __init__(
        self, name: str, model: Model, *, profile: Profile | None = None, options: RouteOptions | None = None
    ) -> None:
        self.name = name
        self.model = model
        self.options = options or RouteOptions()
        self._profile = profile or Profile()
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    def adapt(self, ask: Ask) -> Ask:
        """Return the question with the options of this model applied."""
        options, update = self.options, dict[str, object]()
        if options.temperature is not None:
            update["temperature"] = options.temperature
        if options.max_tokens is not None:
            update["max_tokens"] = min(ask.max_tokens, options.max_tokens)
        return ask.model_copy(update=update) if update else ask

    def get_max_usage(self, ask: Ask) -> Usage:
        """Return the most that an adapted question can use."""
        return estimate_max_usage(self.name, ask, caching=self._profile.caching, rates=self._profile.rates)

    def get_slot(self) -> asyncio.Semaphore | None:
        """Return the semaphore to hold during a call, or None if concurrent calls are not limited."""
        if self.options.at_once is None:
            return None
        loop = asyncio.get_running_loop()
        self._slots = {other_loop: slot for other_loop, slot in self._slots.items() if not other_loop.is_closed()}
        return self._slots.setdefault(loop, asyncio.Semaphore(self.options.at_once))
