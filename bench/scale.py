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
from _figures import at_most, print_figures, told
from _stores import KINDS, fill, keep_a_run, places
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

    async def round(self, luck: random.Random, *, counts: bool) -> None:
        run_id = f"run-{luck.randint(1, self._size)}"
        before = await self._store.load(run_id)
        _, fence = await self._store.claim(run_id)
        await self._timed("commit", self._store.commit(commit(before, artifact="x" * 600, events=3), fence), counts)
        await self._timed("list", self._store.runs(limit=20), counts)
        other = f"run-{luck.randint(1, self._size)}"
        await self._timed("claim", self._store.claim(other), counts)
        await self._timed("resume", self._resume(f"run-{luck.randint(1, self._size)}"), counts)

    async def _resume(self, run_id: str) -> None:
        await self._store.load(run_id)
        await self._store.steps(run_id)
        await self._journal.records(run_id)

    async def _timed(self, what: str, call: Awaitable[object], counts: bool) -> None:
        began = time.perf_counter()
        await call
        if counts:
            self._times[self._kind, what, self._size].append(time.perf_counter() - began)


def measured(folder: Path, sizes: tuple[int, ...], rounds: int) -> Times:
    times: Times = defaultdict(list)
    luck = random.Random(1)
    with ExitStack() as opened:
        where = opened.enter_context(places(folder))
        stored: list[Stored] = []
        for kind in KINDS:
            for size in sizes:
                database = opened.enter_context(Database.open(next(where[kind])))
                began = time.perf_counter()
                fill(database, keep_a_run(database, folder / f"snapshots-{kind}-{size}"), size)
                print(f"{kind:<9} {size:>6} runs made in {time.perf_counter() - began:.1f} s", flush=True)
                stored.append(Stored(kind, size, database, times))
        for number in range(rounds + WARM_UP):
            for item in stored:
                asyncio.run(item.round(luck, counts=number >= WARM_UP))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 2,000 runs, and fewer rounds")
    quick = parser.parse_args().quick
    sizes = QUICK_SIZES if quick else SIZES
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        times = measured(Path(name), sizes, QUICK_ROUNDS if quick else ROUNDS)
    medians = {key: statistics.median(taken) for key, taken in times.items()}
    growths: dict[str, float] = {}
    for kind in KINDS:
        for what in ("commit", "list", "claim", "resume"):
            row = [medians[kind, what, size] for size in sizes]
            growths[f"{kind}_{what}"] = medians[kind, what, sizes[-1]] / medians[kind, what, FROM]
            print(f"{kind:<9} {what:<7}", *(f"{value * 1e3:8.2f} ms" for value in row), flush=True)
    each = [told(f"growth_{name}", value) for name, value in growths.items()]
    print_figures("scale", [at_most("growth", max(growths.values()), AIM), *each], runs=list(sizes))


if __name__ == "__main__":
    main()
