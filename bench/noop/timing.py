"""Two sides in turn: how many steps a second each does, and what a step takes of the processor."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from noop.canned import Canned, on_database
from redstart.engines.drive import drive
from redstart.engines.port import Engine
from redstart.flow.loop import StepAdvance
from redstart.ports.sql.engine import Database
from redstart.ports.store.port.runs import RunClaim


class Timed(NamedTuple):
    rate: float
    """Steps a second."""
    cpu: float
    """Milliseconds of the processor a step, in this process."""


class Pair(NamedTuple):
    """Both sides, round by round."""

    ours: list[Timed]
    bare: list[Timed]

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios: both sides of a round had the machine in the same mood."""
        return statistics.median(ours.rate / bare.rate for ours, bare in zip(self.ours, self.bare, strict=True))


def middle(side: list[Timed]) -> Timed:
    return Timed(statistics.median(item.rate for item in side), statistics.median(item.cpu for item in side))


def timed(steps: int, doing: Callable[[], object]) -> Timed:
    began, cpu = time.perf_counter(), time.process_time()
    doing()
    return Timed(steps / (time.perf_counter() - began), 1000 * (time.process_time() - cpu) / steps)


def pair(rounds: int, ours: Callable[[], Timed], bare: Callable[[], Timed]) -> Pair:
    """Both in turn; the first round of each is not counted."""
    told = [(ours(), bare()) for _ in range(rounds + 1)][1:]
    return Pair([message for message, _ in told], [message for _, message in told])


def drive_once(canned: Canned, database: Database, engine: Engine, name: str) -> Timed:
    """A whole run of no-op steps by this engine on this database."""
    adapters = on_database(canned, database)

    async def begun() -> RunClaim:
        await adapters.store.create(canned.began(name), folder="/noop", created=datetime.now(UTC))
        return await adapters.store.claim(name)

    claim = asyncio.run(begun())
    done: list[StepAdvance] = []
    told = timed(len(canned.trail), lambda: done.append(asyncio.run(drive(adapters, claim, engine))))
    assert done[0].state.version == len(canned.trail), done[0].state.reason
    return told
