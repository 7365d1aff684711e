"""A driver that is killed in the middle of remembering: nothing that was learned is lost, and none is there twice."""

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
from redstart.ports.sql.memory import SqlMemory
from redstart.testing.states import signature

RUNS = 25
REMEMBERING = """
import asyncio, sys
from pathlib import Path
from redstart.core.learning import Remembered
from redstart.core.run import Step
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.engine import Database
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import DAWN
from redstart.testing.states import card, commit, failure, pattern, signature, state

async def go_on(store, memory, runs):
    known = {row.run_id for row in await store.runs(limit=runs)}
    for number in range(runs):
        run_id = f"run-{number}"
        if run_id not in known:
            await store.create(state(run_id=run_id), folder="", created=DAWN)
        now, fence = await store.claim(run_id)
        if now.last is Step.remember:
            continue  # done, as far as the store knows
        left = Remembered(
            card=card(f"{run_id}-1", signature=signature()),
            failure=failure(f"{run_id}-1", signature=signature()),
            pattern=pattern(f"{run_id}-1", goal=f"sort csv files by column {number}"),
        )
        print("begins", run_id, flush=True)
        await store.commit(commit(now, Step.remember, remembered=left), fence)
        print("kept", run_id, flush=True)
        await memory.recall(signature(frame=f"other_{number}.py:f"), tenant="home", repo="shop")
        await memory.patterns("sort csv files by column", tenant="home", repo="shop")

where = sys.argv[1]
with Database.open(where if "://" in where else Path(where)) as database:
    asyncio.run(go_on(SqlStore(database, lambda: 0.0), SqlMemory(database, HashingEmbedder()), int(sys.argv[2])))
"""


def counts(database: Database, table: str) -> Counter[str]:
    """How often each run is in the table."""
    with database.reading() as connection:
        return Counter(connection.execute(text(f"SELECT run_id FROM {table}")).scalars())


@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.soak)])
def test_no_card_is_lost_or_there_twice(made: Path | str, kills: int) -> None:
    runs = RUNS if kills < 10 else 60
    kept: set[str] = set()
    for number in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", REMEMBERING, str(made), str(runs)],
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout is not None
            # killed while it writes the first, the second … it says so before, and it is gone before it is done
            for _ in range(1 + 2 * (number % 3)):
                process.stdout.readline()
            process.kill()
            rest = process.stdout.read()
        kept |= {line.split()[1] for line in rest.splitlines() if line.startswith("kept ")}
        with Database.open(made) as database:
            cards, failures, patterns = (counts(database, table) for table in ("cards", "failures", "patterns"))
            assert kept <= set(cards), "what was reported as kept is there"
            assert set(cards) == set(failures) == set(patterns), "all of a commit, or nothing"
            assert {*cards.values(), *failures.values(), *patterns.values()} <= {1}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", REMEMBERING, str(made), str(runs)], stdout=subprocess.PIPE, check=True
    )
    assert done.returncode == 0
    with Database.open(made) as database:
        assert counts(database, "cards") == {f"run-{number}": 1 for number in range(runs)}
        assert set(counts(database, "edges")) == set(counts(database, "cards"))
        memory = SqlMemory(database, HashingEmbedder())
        found = asyncio.run(memory.recall(signature(), tenant="home", repo="shop", limit=runs + 9))
        assert len({one.card.id for one in found}) == len(found) == runs
        reached = asyncio.run(memory.patterns("sort csv files by column", tenant="home", repo="shop", limit=runs + 9))
        assert len({one.pattern.id for one in reached}) == len(reached) == runs
        with database.reading() as connection:
            for table in ("vectors", "pattern_vectors"):
                assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == runs
