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
from _stores import KINDS, keep_a_run, provide_locations
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
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name, provide_locations(Path(name)) as locations:
        for kind in KINDS:
            place = next(locations[kind])
            with Database.open(place) as database:
                ratios, commit_rates, insert_rates = _measure_rates(database, place, Path(name), rounds)
            figures |= {
                f"{kind}_ratio": statistics.median(ratios),
                f"{kind}_commits": statistics.median(commit_rates),
                f"{kind}_inserts": statistics.median(insert_rates),
            }
    return figures


def _measure_rates(
    database: Database, place: Path | str, folder: Path, rounds: int
) -> tuple[list[float], list[float], list[float]]:
    source = keep_a_run(database, folder / f"snapshots-{database.is_postgres}")
    store = SqlStore(database, time.time)
    state, fence = asyncio.run(store.claim(source))
    insert = _create_inserter(place)
    ratios, commit_rates, insert_rates = list[float](), list[float](), list[float]()
    for turn in range(rounds + 1):
        commits: list[StepCommit] = []
        for _ in range(COMMITS):
            commits.append(commit(state, artifact="x" * 600, events=3))
            state = commits[-1].after
        rows = [_build_row(turn * COMMITS + number, item) for number, item in enumerate(commits)]

        async def write(batch: list[StepCommit] = commits) -> None:
            for item in batch:
                await store.commit(item, fence)

        began = time.perf_counter()
        asyncio.run(write())
        middle = time.perf_counter()
        for row in rows:
            insert(row)
        ends = time.perf_counter()
        if turn:  # the first round is a warm-up
            commit_rates.append(COMMITS / (middle - began))
            insert_rates.append(COMMITS / (ends - middle))
            ratios.append(commit_rates[-1] / insert_rates[-1])
    return ratios, commit_rates, insert_rates


def _build_row(number: int, step_commit: StepCommit) -> tuple[int, str, str, str, str]:
    """Return the bytes that a commit writes: the state goes into two tables."""
    state = step_commit.after.model_dump_json()
    return (
        number,
        state,
        state,
        step_commit.artifact,
        "\n".join(event.model_dump_json() for event in step_commit.events),
    )


def _create_inserter(place: Path | str) -> Callable[[tuple[int, str, str, str, str]], object]:
    if isinstance(place, Path):
        sqlite_connection = sqlite3.connect(place, isolation_level=None)
        sqlite_connection.execute("PRAGMA synchronous = FULL")
        sqlite_connection.execute(_BARE)
        return lambda row: sqlite_connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?)", row)
    postgres_connection = psycopg.connect(place, autocommit=True)
    postgres_connection.execute(_BARE.encode())
    return lambda row: postgres_connection.execute("INSERT INTO bare VALUES (%s, %s, %s, %s, %s)", row)


if __name__ == "__main__":
    for name, value in measure(7).items():
        print(f"{name:<18} {value:10.3f}")
