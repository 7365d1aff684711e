"""One model as the gateway sees it: how much of it may be used at once, and whether it is worth asking now."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from redstart.core.chat import Ask, Usage
from redstart.ports.model.port import Model, Profile
from redstart.ports.model.prices import most


class RouteOptions(NamedTuple):
    """How one model is asked, beside what the question says."""

    temperature: float | None = None
    """Instead of the question's."""
    max_tokens: int | None = None
    """At most so many tokens of answer, whatever the question allows."""
    at_once: int | None = None
    """At most so many calls at a time, in one event loop."""
    tokens_a_minute: int | None = None
    """At most so many tokens in any minute, counted before the call by what it can take at most."""
    requests_a_minute: int | None = None
    """At most so many calls in any minute."""


class CircuitBreaker:
    """Says whether a model is worth asking. After `limit` failures in a row it is left alone for `rest` seconds.

    Then one call may try; whether it fails decides for the others.
    """

    def __init__(self, limit: int, rest: float) -> None:
        self._limit, self._rest = limit, rest
        self._failures = 0
        self._until = 0.0
        self._trying = False

    def wait(self, now: float) -> float:
        """Seconds until a call may be made; 0 for now."""
        if self._failures < self._limit:
            return 0.0
        if self._trying:
            return self._rest
        return max(self._until - now, 0.0)

    @contextmanager
    def trying(self) -> Generator[None]:
        """Around a call: while a tripped model is tried, no other call is let through."""
        mine = self._failures >= self._limit
        self._trying = self._trying or mine
        try:
            yield
        finally:
            if mine:
                self._trying = False

    def failed(self, now: float) -> None:
        self._failures += 1
        if self._failures >= self._limit:
            self._until = now + self._rest

    def answered(self) -> None:
        self._failures = 0


class TokenBucket:
    """Tokens that flow in evenly, a minute's worth at most. A call takes its own, then waits until they are there."""

    def __init__(self, a_minute: int, now: float) -> None:
        self._size = float(a_minute)
        self._level = self._size
        self._at = now

    def take(self, tokens: int, now: float) -> float:
        """Takes them, and says how many seconds to wait before they may be used. More than a minute's worth is that."""
        self._flow(now)
        self._level -= min(tokens, self._size)
        return max(-self._level, 0.0) * 60 / self._size

    def give_back(self, tokens: int, now: float) -> None:
        """Of what was taken, so many were not used; fewer than none where more was used."""
        self._flow(now)
        self._level = min(self._level + tokens, self._size)

    def _flow(self, now: float) -> None:
        self._level = min(self._level + max(now - self._at, 0.0) * self._size / 60, self._size)
        self._at = max(now, self._at)


class RateLimits(Protocol):
    """Buckets by name. Who shares them keeps to one rate, whatever process it is in."""

    def take(self, name: str, tokens: int, a_minute: int, now: float) -> float:
        """As `TokenBucket.take`, of the bucket with this name and size."""
        ...

    def give_back(self, name: str, tokens: int, a_minute: int, now: float) -> None:
        """As `TokenBucket.give_back`."""
        ...


class LocalRateLimits:
    """Rates that one process keeps to by itself."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, name: str, tokens: int, a_minute: int, now: float) -> float:
        return self._bucket(name, a_minute, now).take(tokens, now)

    def give_back(self, name: str, tokens: int, a_minute: int, now: float) -> None:
        self._bucket(name, a_minute, now).give_back(tokens, now)

    def _bucket(self, name: str, a_minute: int, now: float) -> TokenBucket:
        return self._buckets.setdefault(name, TokenBucket(a_minute, now))


class ModelRoute:
    """A model with its name, its options and its state. It may be used from several event loops, one after another."""

    def __init__(
        self, name: str, model: Model, *, profile: Profile | None = None, options: RouteOptions | None = None
    ) -> None:
        self.name = name
        self.model = model
        self.options = options or RouteOptions()
        self._profile = profile or Profile()
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    def adapted(self, ask: Ask) -> Ask:
        """The question as this model is asked it."""
        options, update = self.options, dict[str, object]()
        if options.temperature is not None:
            update["temperature"] = options.temperature
        if options.max_tokens is not None:
            update["max_tokens"] = min(ask.max_tokens, options.max_tokens)
        return ask.model_copy(update=update) if update else ask

    def most(self, ask: Ask) -> Usage:
        """What an adapted question can take at most."""
        return most(self.name, ask, caching=self._profile.caching, rates=self._profile.rates)

    def slot(self) -> asyncio.Semaphore | None:
        """To be held during a call; None where any number may be made at once."""
        if self.options.at_once is None:
            return None
        loop = asyncio.get_running_loop()
        self._slots = {known: slot for known, slot in self._slots.items() if not known.is_closed()}
        return self._slots.setdefault(loop, asyncio.Semaphore(self.options.at_once))
