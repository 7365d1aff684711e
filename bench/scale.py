"""Whether the store stays fast as it grows: latencies with 10, 100, 1,000 and 10,000 runs in it.

The runs are copies of a run of two attempts with a scripted model, with all its steps, events and records. In each
round, for each size in turn, random runs are picked and these operations are timed: `commit` of a step, the `list` of
the twenty newest runs, `claim` of a run, and `resume` (the state, the steps and the journal), on SQLite and on
Postgres.

`growth` is the worst ratio, over all operations, of the median with the most runs to the median with 100.

`--quick` goes up to 2,000 runs, with fewer rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable
from contextlib import ExitStack
from pathlib import Path

import _paths  # noqa: F401
from _figures import expect_at_most, print_figures, report_value
from _stores import KINDS, fill, keep_a_run, provide_locations
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.testing.states import commit

AIM = 1.3
SIZES, QUICK_SIZES = (10, 100, 1_000, 10_000), (10, 100, 1_000, 2_000)
FROM = 100
ROUNDS, QUICK_ROUNDS = 300, 40
WARM_UP = 5

Times = dict[tuple[str, str, int], list[float]]
"""Seconds by database, operation and number of runs."""


class Stored:
    """A database that holds `size` runs."""

    def __init__(self, kind: str, size: int, database: Database, times: Times) -> None:
        self._kind, self._size, self._times = kind, size, times
        self._store, self._journal = SqlStore(database, time.time), SqlJournal(database)

    async def run_round(self, rng: random.Random, *, is_counted: bool) -> None:
        run_id = f"run-{rng.randint(1, self._size)}"
        state = await self._store.load(run_id)
        _, fence = await self._store.claim(run_id)
        await self._measure(
            "commit", self._store.commit(commit(state, artifact="x" * 600, events=3), fence), is_counted
        )
        await self._measure("list", self._store.list_runs(limit=20), is_counted)
        claimed_id = f"run-{rng.randint(1, self._size)}"
        await self._measure("claim", self._store.claim(claimed_id), is_counted)
        await self._measure("resume", self._resume(f"run-{rng.randint(1, self._size)}"), is_counted)

    async def _resume(self, run_id: str) -> None:
        await self._store.load(run_id)
        await self._store.list_steps(run_id)
        await self._journal.list_records(run_id)

    async def _measure(self, operation: str, call: Awaitable[object], is_counted: bool) -> None:
        began = time.perf_counter()
        await call
        if is_counted:
            self._times[self._kind, operation, self._size].append(time.perf_counter() - began)


def measure_latencies(folder: Path, sizes: tuple[int, ...], rounds: int) -> Times:
    times: Times = defaultdict(list)
    rng = random.Random(1)
    with ExitStack() as stack:
        locations = stack.enter_context(provide_locations(folder))
        stored: list[Stored] = []
        for kind in KINDS:
            for size in sizes:
                database = stack.enter_context(Database.open(next(locations[kind])))
                began = time.perf_counter()
                fill(database, keep_a_run(database, folder / f"snapshots-{kind}-{size}"), size)
                print(f"{kind:<9} {size:>6} runs made in {time.perf_counter() - began:.1f} s", flush=True)
                stored.append(Stored(kind, size, database, times))
        for number in range(rounds + WARM_UP):
            for item in stored:
                asyncio.run(item.run_round(rng, is_counted=number >= WARM_UP))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 2,000 runs, and fewer rounds")
    quick = parser.parse_args().quick
    sizes = QUICK_SIZES if quick else SIZES
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        times = measure_latencies(Path(name), sizes, QUICK_ROUNDS if quick else ROUNDS)
    medians = {key: statistics.median(samples) for key, samples in times.items()}
    growths: dict[str, float] = {}
    for kind in KINDS:
        for operation in ("commit", "list", "claim", "resume"):
            row = [medians[kind, operation, size] for size in sizes]
            growths[f"{kind}_{operation}"] = medians[kind, operation, sizes[-1]] / medians[kind, operation, FROM]
            print(f"{kind:<9} {operation:<7}", *(f"{value * 1e3:8.2f} ms" for value in row), flush=True)
    growth_figures = [report_value(f"growth_{name}", value) for name, value in growths.items()]
    print_figures("scale", [expect_at_most("growth", max(growths.values()), AIM), *growth_figures], runs=list(sizes))


if __name__ == "__main__":
    main()
