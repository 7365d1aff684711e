"""Many queued runs while workers are killed and both servers restart: each run ends once, and nothing happens twice."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import OperationalError

from _figures import Figure, at_least, exactly, told
from drills.beside import beside
from drills.ground import Ground, Worker, new_ground, tiny_repo
from drills.truth import truth
from redstart.core.errors import PortError
from redstart.core.run import RunState
from redstart.engines.temporal.orders import order_of

WORKERS = 4
AT_ONCE = 2
KILL_SECONDS = 5.0
CALLS = 2
"""Model calls of an undisturbed run: a patch and a card."""


class Weather(NamedTuple):
    """The scale of the storm."""

    runs: int
    restart: tuple[float, float]
    """The range of seconds between two restarts of Postgres."""
    most: float
    """Seconds after which an unfinished run counts as lost."""
    lasts: float
    """Seconds after which no worker is killed and Postgres is left alone; Temporal's restarts depend on the runs."""


def weather(runs: int, *, quick: bool) -> Weather:
    if quick:
        return Weather(runs, (8, 15), 240, lasts=25)
    return Weather(runs, (20, 40), 300 + 12.0 * runs, lasts=math.inf)


class Storm:
    """Kills workers and restarts servers, from threads of its own, until it is stopped."""

    def __init__(self, ground: Ground, weather: Weather, seed: int) -> None:
        self._ground, self._weather = ground, weather
        self._over = threading.Event()
        self._luck = {name: random.Random(f"{seed} {name}") for name in ("kills", "restarts")}
        self._workers: list[Worker] = []
        self._calm = math.inf
        self.killed = self.fell = self.postgres = self.temporal = 0
        self.ended = 0

    @contextmanager
    def blowing(self) -> Generator[None]:
        """Disturb the fleet while the context is open. Raises if a part of it fails: a calm drill proves nothing."""
        self._workers = [self._ground.worker(at_once=AT_ONCE) for _ in range(WORKERS)]
        for worker in self._workers:
            worker.wait_ready()
        self._calm = time.monotonic() + self._weather.lasts
        with beside(self._over, self._kill, self._restart):
            yield

    def _kill(self) -> None:
        while not self._over.wait(KILL_SECONDS):
            for at, worker in enumerate(self._workers):
                if worker.process.poll() is not None:  # It could not start while a server was down.
                    self.fell += 1
                    self._workers[at] = self._ground.worker(at_once=AT_ONCE)
            ready = [at for at, worker in enumerate(self._workers) if worker.is_ready()]
            if ready and time.monotonic() < self._calm:
                at = self._luck["kills"].choice(ready)
                self._workers[at].kill()
                self.killed += 1
                self._workers[at] = self._ground.worker(at_once=AT_ONCE)

    def _restart(self) -> None:
        due = time.monotonic() + self._luck["restarts"].uniform(*self._weather.restart)
        while not self._over.wait(0.5):
            if due <= time.monotonic() < self._calm:
                self._ground.postgres.restart()
                self.postgres += 1
                due = time.monotonic() + self._luck["restarts"].uniform(*self._weather.restart)
            if self.temporal < 2 and self.ended >= (self.temporal + 1) * self._weather.runs / 3:
                self._ground.temporal.restart()
                self.temporal += 1


async def _watched(ground: Ground, storm: Storm, runs: int, ends: float, say: Callable[[str], None]) -> None:
    """Wait until the store reports that all runs have ended, or until the time is up."""
    last = 0.0
    while storm.ended < runs and time.monotonic() < ends:
        await asyncio.sleep(1.0)
        try:
            storm.ended = ground.rows("SELECT count(*) FROM runs WHERE status = 'finished'")[0][0]
        except OperationalError:
            continue  # Postgres is restarting.
        if time.monotonic() - last > 30:
            last = time.monotonic()
            say(f"{storm.ended} of {runs} ended; {storm.killed} workers killed, Postgres restarted {storm.postgres}x")


async def _supervisors_left(ground: Ground, runs: Sequence[RunState], seconds: float) -> int:
    """Count the supervisors that have not ended with their run, after some time to notice its end."""
    fleet = await ground.fleet()
    left, ends = list(runs), time.monotonic() + seconds
    while left and time.monotonic() < ends:
        try:
            left = [run for run in left if await fleet.is_supervised(order_of(run))]
        except PortError:
            continue
        if left:
            await asyncio.sleep(1.0)
    return len(left)


def storm(seed: int, runs: int, *, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    rough = weather(runs, quick=quick)

    async def blow() -> list[Figure]:
        with new_ground() as ground:
            queued = await ground.begin(tiny_repo(ground.folder / "calc"), runs)
            await ground.submit(queued)
            raging = Storm(ground, rough, seed)
            with raging.blowing():
                began = time.monotonic()
                await _watched(ground, raging, runs, began + rough.most, say)
            took = time.monotonic() - began
            # The last answers may still be in flight to the supervisors: a killed worker is noticed after 15 s.
            left = await _supervisors_left(ground, queued, 90.0)
            found = truth(ground, [run.run_id for run in queued])
            calls = ground.rows("SELECT count(*) FROM journal WHERE kind = 'model'")[0][0]
            return [
                exactly("storm_ended", runs - len(found.lost), runs),
                exactly("storm_lost", len(found.lost | found.gaps), 0),
                exactly("storm_twice", len(found.twice), 0),
                exactly("storm_other_way", len(found.other_way), 0),
                exactly("storm_supervisors_left", left, 0),
                exactly("storm_answers_recorded", calls, CALLS * runs),
                at_least("storm_temporal_restarts", raging.temporal, 2),
                told("storm_asked_again", len(ground.model.requests) - CALLS * runs),
                told("storm_workers_killed", raging.killed),
                told("storm_workers_fell", raging.fell),
                told("storm_postgres_restarts", raging.postgres),
                told("storm_seconds", took),
                told("storm_seconds_a_run", took / runs),
            ]

    return asyncio.run(blow())
