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

from _figures import Figure, expect_at_least, expect_equal, report_value
from drills.beside import run_in_background
from drills.ground import Ground, Worker, create_tiny_repo, open_cluster
from drills.truth import check_runs
from redstart.core.errors import PortError
from redstart.core.run import RunState
from redstart.engines.temporal.orders import create_order

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


def choose_weather(runs: int, *, quick: bool) -> Weather:
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
    def disturb_fleet(self) -> Generator[None]:
        """Disturb the fleet while the context is open. Raises if a part of it fails: a calm drill proves nothing."""
        self._workers = [self._ground.start_worker(at_once=AT_ONCE) for _ in range(WORKERS)]
        for worker in self._workers:
            worker.wait_ready()
        self._calm = time.monotonic() + self._weather.lasts
        with run_in_background(self._over, self._kill, self._restart):
            yield

    def _kill(self) -> None:
        while not self._over.wait(KILL_SECONDS):
            for index, worker in enumerate(self._workers):
                if worker.process.poll() is not None:  # It could not start while a server was down.
                    self.fell += 1
                    self._workers[index] = self._ground.start_worker(at_once=AT_ONCE)
            ready = [index for index, worker in enumerate(self._workers) if worker.is_ready()]
            if ready and time.monotonic() < self._calm:
                index = self._luck["kills"].choice(ready)
                self._workers[index].kill()
                self.killed += 1
                self._workers[index] = self._ground.start_worker(at_once=AT_ONCE)

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


async def _wait_until_ended(ground: Ground, storm: Storm, runs: int, ends: float, say: Callable[[str], None]) -> None:
    """Wait until the store reports that all runs have ended, or until the time is up."""
    last_report = 0.0
    while storm.ended < runs and time.monotonic() < ends:
        await asyncio.sleep(1.0)
        try:
            storm.ended = ground.query_rows("SELECT count(*) FROM runs WHERE status = 'finished'")[0][0]
        except OperationalError:
            continue  # Postgres is restarting.
        if time.monotonic() - last_report > 30:
            last_report = time.monotonic()
            say(f"{storm.ended} of {runs} ended; {storm.killed} workers killed, Postgres restarted {storm.postgres}x")


async def _count_supervisors(ground: Ground, runs: Sequence[RunState], seconds: float) -> int:
    """Count the supervisors that have not ended with their run, after some time to notice its end."""
    fleet = await ground.connect_fleet()
    remaining, ends = list(runs), time.monotonic() + seconds
    while remaining and time.monotonic() < ends:
        try:
            remaining = [run for run in remaining if await fleet.is_supervised(create_order(run))]
        except PortError:
            continue
        if remaining:
            await asyncio.sleep(1.0)
    return len(remaining)


def measure_storm(seed: int, runs: int, *, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    rough = choose_weather(runs, quick=quick)

    async def run_drill() -> list[Figure]:
        with open_cluster() as cluster:
            queued_runs = await cluster.store_runs(create_tiny_repo(cluster.folder / "calc"), runs)
            await cluster.submit(queued_runs)
            raging = Storm(cluster, rough, seed)
            with raging.disturb_fleet():
                began = time.monotonic()
                await _wait_until_ended(cluster, raging, runs, began + rough.most, say)
            seconds = time.monotonic() - began
            # The last answers may still be in flight to the supervisors: a killed worker is noticed after 15 s.
            remaining = await _count_supervisors(cluster, queued_runs, 90.0)
            report = check_runs(cluster, [run.run_id for run in queued_runs])
            calls = cluster.query_rows("SELECT count(*) FROM journal WHERE kind = 'model'")[0][0]
            return [
                expect_equal("storm_ended", runs - len(report.lost), runs),
                expect_equal("storm_lost", len(report.lost | report.gaps), 0),
                expect_equal("storm_twice", len(report.twice), 0),
                expect_equal("storm_other_way", len(report.other_way), 0),
                expect_equal("storm_supervisors_left", remaining, 0),
                expect_equal("storm_answers_recorded", calls, CALLS * runs),
                expect_at_least("storm_temporal_restarts", raging.temporal, 2),
                report_value("storm_asked_again", len(cluster.model.requests) - CALLS * runs),
                report_value("storm_workers_killed", raging.killed),
                report_value("storm_workers_fell", raging.fell),
                report_value("storm_postgres_restarts", raging.postgres),
                report_value("storm_seconds", seconds),
                report_value("storm_seconds_a_run", seconds / runs),
            ]

    return asyncio.run(run_drill())
