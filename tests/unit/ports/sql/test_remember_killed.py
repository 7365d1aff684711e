"""A driver that is killed in the remember step: no memory is lost, and none is stored twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.engine import Database
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.testing.states import make_signature

pytestmark = pytest.mark.slow

RUNS = 100
REMEMBERING = """
import asyncio, sys
from pathlib import Path
from redstart.core.learning import NewMemories
from redstart.core.lesson import LessonDraw, LessonDraws
from redstart.core.run import Result, Status, Step
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.engine import Database
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import DAWN
from redstart.testing.states import commit, make_card, make_failure, make_lesson
from redstart.testing.states import make_pattern, make_signature, make_state

COINS = LessonDraws(coins=[LessonDraw(lesson=name, shown=name == "a", probability=0.5) for name in "ab"])

async def go_on(store, memory, runs):
    known = {row.run_id for row in await store.list_runs(limit=runs)}
    for number in range(runs):
        run_id = f"run-{number}"
        if run_id not in known:
            await store.create(make_state(run_id=run_id), folder="", created=DAWN)
        now, fence = await store.claim(run_id)
        if now.last is None:
            left = NewMemories(
                card=make_card(f"{run_id}-1", make_signature()),
                failure=make_failure(f"{run_id}-1", make_signature()),
                lesson=make_lesson(f"lesson-{run_id}-1"),
                pattern=make_pattern(f"{run_id}-1", goal=f"sort csv files by column {number}"),
            )
            remembered = commit(now, Step.remember, remembered=left)
            print("begins", run_id, flush=True)
            await store.commit(remembered, fence)
            print("kept", run_id, flush=True)
            now = remembered.after
        if now.status is Status.running:  # else it is done, as far as the store knows
            ending = {"status": Status.finished, "result": Result.verified, "taught": COINS}
            await store.commit(commit(now, Step.decide, **ending), fence)
            print("used", run_id, flush=True)
        await memory.recall(make_signature(frame=f"other_{number}.py:f"), tenant="home", repo="shop")
        await memory.recall_patterns("sort csv files by column", tenant="home", repo="shop")

where = sys.argv[1]
with Database.open(where if "://" in where else Path(where)) as database:
    asyncio.run(go_on(SqlStore(database, lambda: 0.0), SqlMemory(database, HashingEmbedder()), int(sys.argv[2])))
"""


def count_rows_by_run(database: Database, table: str) -> Counter[str]:
    """Count how often each run is in the table."""
    with database.connect_for_reading() as connection:
        return Counter(connection.execute(text(f"SELECT run_id FROM {table}")).scalars())


def build_command(where: Path | str, runs: int) -> list[str]:
    return [sys.executable, "-W", "error", "-c", REMEMBERING, str(where), str(runs)]


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.soak)])
def test_killed_driver_neither_loses_nor_duplicates_memories(made: Path | str, kills: int) -> None:
    runs = RUNS if kills < 10 else 10 * RUNS
    runs_by_event: dict[str, set[str]] = {"begins": set(), "kept": set(), "used": set()}
    for number in range(kills):
        with subprocess.Popen(build_command(made, runs), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            # Killed while it writes memories or the end of the run; it prints a line before or after each write.
            output_lines = [process.stdout.readline() for _ in range(1 + number % 6)]
            process.kill()
            output_lines += process.stdout.readlines()
        for line in filter(str.strip, output_lines):
            event, run = line.split()
            runs_by_event[event].add(run)
        with Database.open(made) as database:
            table_counts = [
                count_rows_by_run(database, table) for table in ("cards", "failures", "lessons", "patterns")
            ]
            cards, uses = table_counts[0], count_rows_by_run(database, "uses")
        assert runs_by_event["kept"] <= set(cards), "every run reported as stored is in the table"
        assert all(item == cards for item in table_counts), "a commit stores all or nothing"
        assert set(cards.values()) <= {1}
        assert runs_by_event["used"] <= set(uses) <= set(cards)
        assert set(uses.values()) <= {2}, "one for each of the two lessons"
    assert len(runs_by_event["begins"]) < runs, "the last runs had not started yet"
    subprocess.run(build_command(made, runs), stdout=subprocess.DEVNULL, check=True)
    expected = {f"run-{number}": 1 for number in range(runs)}
    with Database.open(made) as database:
        assert count_rows_by_run(database, "cards") == count_rows_by_run(database, "lessons") == expected
        assert count_rows_by_run(database, "uses") == dict.fromkeys(expected, 2)
        assert set(count_rows_by_run(database, "edges")) == set(expected)
        memory, lesson_store = SqlMemory(database, HashingEmbedder()), SqlLessonStore(database)
        recalled_cards = asyncio.run(memory.recall(make_signature(), tenant="home", repo="shop", limit=runs + 9))
        assert len({item.card.id for item in recalled_cards}) == len(recalled_cards) == runs
        recalled_patterns = asyncio.run(
            memory.recall_patterns("sort csv files by column", tenant="home", repo="shop", limit=runs + 9)
        )
        assert len({item.pattern.id for item in recalled_patterns}) == len(recalled_patterns) == runs
        assert len({item.id for item in asyncio.run(lesson_store.list_lessons())}) == runs
        assert [len(item) for item in asyncio.run(lesson_store.list_uses(["a", "b"])).values()] == [runs, runs]
        with database.connect_for_reading() as connection:
            for table in ("vectors", "pattern_vectors"):
                assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == runs
