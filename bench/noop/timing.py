"""Two sides in turn: how many steps a second each does, and what a step takes of the processor."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from noop.canned import Canned, on_database
from redstart.engines.port import Engine
from redstart.engines.step_driver import drive
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
        return statistics.median(
            own_timing.rate / bare_timing.rate for own_timing, bare_timing in zip(self.ours, self.bare, strict=True)
        )


def compute_median(timings: list[Timed]) -> Timed:
    return Timed(statistics.median(item.rate for item in timings), statistics.median(item.cpu for item in timings))


def measure_steps(steps: int, doing: Callable[[], object]) -> Timed:
    began, cpu = time.perf_counter(), time.process_time()
    doing()
    return Timed(steps / (time.perf_counter() - began), 1000 * (time.process_time() - cpu) / steps)


def pair(rounds: int, run_own: Callable[[], Timed], bare: Callable[[], Timed]) -> Pair:
    """Both in turn; the first round of each is not counted."""
    timings = [(run_own(), bare()) for _ in range(rounds + 1)][1:]
    return Pair([message for message, _ in timings], [message for _, message in timings])


def drive_once(canned: Canned, database: Database, engine: Engine, name: str) -> Timed:
    """A whole run of no-op steps by this engine on this database."""
    adapters = on_database(canned, database)

    async def begin_run() -> RunClaim:
        await adapters.store.create(canned.create_state(name), folder="/noop", created=datetime.now(UTC))
        return await adapters.store.claim(name)

    claim = asyncio.run(begin_run())
    advances: list[StepAdvance] = []
    timing = measure_steps(len(canned.trail), lambda: advances.append(asyncio.run(drive(adapters, claim, engine))))
    assert advances[0].state.version == len(canned.trail), advances[0].state.reason
    return timing
