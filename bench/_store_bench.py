"""The cost of our commit beside an equally durable bare INSERT of the same bytes in the same database."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

import _paths  # noqa: F401
from _stores import KINDS, keep_a_run, places
from redstart.ports.sql.engine import Database
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.runs import StepCommit
from redstart.testing.states import commit

COMMITS = 100
"""Commits that each side makes in a round."""
_BARE = "CREATE TABLE bare (number INTEGER PRIMARY KEY, state TEXT, again TEXT, artifact TEXT, said TEXT)"


def measure(rounds: int) -> dict[str, float]:
    """Return `sqlite_ratio` and `postgres_ratio` (our commits a second to bare INSERTs a second), and both rates.

    The two sides alternate, and each figure is the median of the rounds.
    """
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name, places(Path(name)) as where:
        for kind in KINDS:
            place = next(where[kind])
            with Database.open(place) as database:
                ratios, ours, bares = _sides(database, place, Path(name), rounds)
            figures |= {
                f"{kind}_ratio": statistics.median(ratios),
                f"{kind}_commits": statistics.median(ours),
                f"{kind}_inserts": statistics.median(bares),
            }
    return figures


def _sides(
    database: Database, place: Path | str, folder: Path, rounds: int
) -> tuple[list[float], list[float], list[float]]:
    source = keep_a_run(database, folder / f"snapshots-{database.is_postgres}")
    store = SqlStore(database, time.time)
    now, fence = asyncio.run(store.claim(source))
    insert = _inserter(place)
    ratios, ours, bares = list[float](), list[float](), list[float]()
    for turn in range(rounds + 1):
        commits: list[StepCommit] = []
        for _ in range(COMMITS):
            commits.append(commit(now, artifact="x" * 600, events=3))
            now = commits[-1].after
        rows = [_row(turn * COMMITS + number, item) for number, item in enumerate(commits)]

        async def write(many: list[StepCommit] = commits) -> None:
            for item in many:
                await store.commit(item, fence)

        began = time.perf_counter()
        asyncio.run(write())
        middle = time.perf_counter()
        for row in rows:
            insert(row)
        ends = time.perf_counter()
        if turn:  # the first round is a warm-up
            ours.append(COMMITS / (middle - began))
            bares.append(COMMITS / (ends - middle))
            ratios.append(ours[-1] / bares[-1])
    return ratios, ours, bares


def _row(number: int, one: StepCommit) -> tuple[int, str, str, str, str]:
    """Return the bytes that a commit writes: the state goes into two tables."""
    state = one.after.model_dump_json()
    return number, state, state, one.artifact, "\n".join(event.model_dump_json() for event in one.events)


def _inserter(place: Path | str) -> Callable[[tuple[int, str, str, str, str]], object]:
    if isinstance(place, Path):
        plain = sqlite3.connect(place, isolation_level=None)
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute(_BARE)
        return lambda row: plain.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?)", row)
    served = psycopg.connect(place, autocommit=True)
    served.execute(_BARE.encode())
    return lambda row: served.execute("INSERT INTO bare VALUES (%s, %s, %s, %s, %s)", row)


if __name__ == "__main__":
    for name, value in measure(7).items():
        print(f"{name:<18} {value:10.3f}")
