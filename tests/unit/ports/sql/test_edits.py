"""How edits matched, in the tables: an older database gains the table, and its rows outlive the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select

from redstart.core.change import ApplyResult, EditFit, EditKind, EditRecord, FitCounts, Patch
from redstart.core.run import Attempt, Result, Status, Step
from redstart.ports.sql.engine import Database
from redstart.ports.sql.prune import SqlPrune
from redstart.ports.sql.schema import edits
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import DAWN, Clock
from redstart.testing.states import commit, state

RUNGS = (EditRecord(kind=EditKind.diff, rung=EditFit.recount), EditRecord(kind=EditKind.diff))
TRIED = Attempt(entry=Step.patch, patch=Patch(model="a:1"), apply=ApplyResult(ok=False, rungs=RUNGS))
COUNTED = {EditKind.diff: FitCounts(1, 2)}


async def applied(store: SqlStore) -> None:
    """Commit the apply step of run 1, which records how the edits matched and ends the run."""
    begun, fence = await store.claim("run-1")
    ended = {"status": Status.finished, "result": Result.stuck}
    await store.commit(commit(begun, Step.apply, now=TRIED, **ended), fence)


def test_a_database_of_before_keeps_its_runs_and_counts_from_now_on(of_before: Callable[[str, str], Path]) -> None:
    path = of_before("0002", "edits")

    async def scenario(store: SqlStore) -> None:
        assert await store.load("run-1") == state()
        assert await store.tally("a:1", tenant="home") == {}
        await applied(store)
        assert await store.tally("a:1", tenant="home") == COUNTED

    with Database.open(path) as database:
        asyncio.run(scenario(SqlStore(database, Clock())))


def test_each_edit_has_its_row_which_stays_when_the_run_is_forgotten(tmp_path: Path) -> None:
    async def scenario(database: Database) -> None:
        store = SqlStore(database, Clock())
        await store.create(state(), folder="/home/shop", created=DAWN)
        await applied(store)
        pruned = await SqlPrune(database).prune(
            DAWN.timestamp() + 1, 0, is_over=lambda row: row.status is Status.finished
        )
        assert pruned.runs == ("run-1",)
        assert await store.tally("a:1", tenant="home") == COUNTED

    with Database.open(tmp_path / "store.db") as database:
        asyncio.run(scenario(database))
        with database.reading() as connection:
            rows = connection.execute(select(edits).order_by(edits.c.number)).all()
    assert [tuple(row) for row in rows] == [
        ("home", "run-1", 1, 1, "a:1", "diff", "recount"),
        ("home", "run-1", 1, 2, "a:1", "diff", ""),
    ]
