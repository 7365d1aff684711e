"""Messages of people to a run, in the tables: an older database gains the table, a forgotten run loses its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import func, select

from redstart.core.run import Result, Status
from redstart.ports.sql.engine import Database
from redstart.ports.sql.prune import SqlPrune
from redstart.ports.sql.schema import person_messages
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import DAWN, Clock
from redstart.testing.states import make_state


def test_older_database_keeps_its_runs_and_accepts_messages(of_before: Callable[[str, str], Path]) -> None:
    path = of_before("0001", "told")

    async def run_scenario(store: SqlStore) -> None:
        assert await store.load("run-1") == make_state()
        assert await store.get_holder("run-1") is None
        await store.send_message("run-1", PersonWord.say, "hello", version=0)
        assert [message.text for message in await store.list_messages("run-1")] == ["hello"]

    with Database.open(path) as database:
        asyncio.run(run_scenario(SqlStore(database, Clock())))


def test_messages_are_deleted_with_a_forgotten_run(tmp_path: Path) -> None:
    async def run_scenario(database: Database) -> None:
        store = SqlStore(database, Clock())
        for run_id, overrides in (("run-1", {"status": Status.finished, "result": Result.stuck}), ("run-2", {})):
            await store.create(make_state(run_id=run_id, **overrides), folder="/home/shop", created=DAWN)
            await store.send_message(run_id, PersonWord.say, "hello", version=0)
        prune_result = await SqlPrune(database).prune(
            DAWN.timestamp() + 1, 0, is_over=lambda row: row.status is Status.finished
        )
        assert prune_result.runs == ("run-1",)
        assert await store.list_messages("run-1") == []
        assert len(await store.list_messages("run-2")) == 1

    with Database.open(tmp_path / "store.db") as database:
        asyncio.run(run_scenario(database))
        with database.connect_for_reading() as connection:
            assert connection.execute(select(func.count()).select_from(person_messages)).scalar() == 1
