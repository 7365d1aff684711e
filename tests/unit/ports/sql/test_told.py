"""Messages of people to a run, in the tables: an older database gains the table, a forgotten run loses its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import func, select

from redstart.core.run import Result, Status
from redstart.ports.sql.engine import Database
from redstart.ports.sql.prune import SqlPrune
from redstart.ports.sql.schema import told
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import DAWN, Clock
from redstart.testing.states import state


def test_a_database_of_before_keeps_its_runs_and_can_be_told(of_before: Callable[[str, str], Path]) -> None:
    path = of_before("0001", "told")

    async def scenario(store: SqlStore) -> None:
        assert await store.load("run-1") == state()
        assert await store.holder("run-1") is None
        await store.tell("run-1", PersonWord.say, "hello", version=0)
        assert [message.text for message in await store.told("run-1")] == ["hello"]

    with Database.open(path) as database:
        asyncio.run(scenario(SqlStore(database, Clock())))


def test_what_was_told_goes_with_a_forgotten_run(tmp_path: Path) -> None:
    async def scenario(database: Database) -> None:
        store = SqlStore(database, Clock())
        for run_id, over in (("run-1", {"status": Status.finished, "result": Result.stuck}), ("run-2", {})):
            await store.create(state(run_id=run_id, **over), folder="/home/shop", created=DAWN)
            await store.tell(run_id, PersonWord.say, "hello", version=0)
        pruned = await SqlPrune(database).prune(
            DAWN.timestamp() + 1, 0, is_over=lambda row: row.status is Status.finished
        )
        assert pruned.runs == ("run-1",)
        assert await store.told("run-1") == []
        assert len(await store.told("run-2")) == 1

    with Database.open(tmp_path / "store.db") as database:
        asyncio.run(scenario(database))
        with database.reading() as connection:
            assert connection.execute(select(func.count()).select_from(told)).scalar() == 1
