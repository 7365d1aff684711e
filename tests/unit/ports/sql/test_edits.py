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
from redstart.testing.states import commit, make_state

RUNGS = (EditRecord(kind=EditKind.diff, rung=EditFit.recount), EditRecord(kind=EditKind.diff))
TRIED = Attempt(entry=Step.patch, patch=Patch(model="a:1"), apply=ApplyResult(ok=False, rungs=RUNGS))
COUNTED = {EditKind.diff: FitCounts(1, 2)}


async def commit_apply_step(store: SqlStore) -> None:
    """Commit the apply step of run 1, which records how the edits matched and ends the run."""
    claimed_state, fence = await store.claim("run-1")
    end_fields = {"status": Status.finished, "result": Result.stuck}
    await store.commit(commit(claimed_state, Step.apply, now=TRIED, **end_fields), fence)


def test_older_database_keeps_its_runs_and_starts_counting_edits(of_before: Callable[[str, str], Path]) -> None:
    path = of_before("0002", "edits")

    async def run_scenario(store: SqlStore) -> None:
        assert await store.load("run-1") == make_state()
        assert await store.count_fits("a:1", tenant="home") == {}
        await commit_apply_step(store)
        assert await store.count_fits("a:1", tenant="home") == COUNTED

    with Database.open(path) as database:
        asyncio.run(run_scenario(SqlStore(database, Clock())))


def test_edit_rows_outlive_a_forgotten_run(tmp_path: Path) -> None:
    async def run_scenario(database: Database) -> None:
        store = SqlStore(database, Clock())
        await store.create(make_state(), folder="/home/shop", created=DAWN)
        await commit_apply_step(store)
        prune_result = await SqlPrune(database).prune(
            DAWN.timestamp() + 1, 0, is_over=lambda row: row.status is Status.finished
        )
        assert prune_result.runs == ("run-1",)
        assert await store.count_fits("a:1", tenant="home") == COUNTED

    with Database.open(tmp_path / "store.db") as database:
        asyncio.run(run_scenario(database))
        with database.connect_for_reading() as connection:
            rows = connection.execute(select(edits).order_by(edits.c.number)).all()
    assert [tuple(row) for row in rows] == [
        ("home", "run-1", 1, 1, "a:1", "diff", "recount"),
        ("home", "run-1", 1, 2, "a:1", "diff", ""),
    ]
