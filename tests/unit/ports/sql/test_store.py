"""Details of the tables that the ports do not show."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, update

from redstart.core.errors import StoreError
from redstart.core.learning import NewMemories
from redstart.core.run import Status, Step
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import cards, failures, runs
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import DAWN, Clock, begin
from redstart.testing.states import commit, make_card, make_failure, make_signature, make_spec, make_state


@pytest.fixture
def database(made: Path | str) -> Iterator[Database]:
    with Database.open(made) as database:
        yield database


async def test_memories_are_stored_under_their_run(database: Database) -> None:
    async def run_scenario() -> None:
        store = SqlStore(database.for_tenant("us"), Clock(77.0))
        new, fence = await begin(store, spec=make_spec(tenant="us", repo="bank"))
        await store.commit(
            commit(new, Step.remember, remembered=NewMemories(card=make_card(), failure=make_failure())), fence
        )

    await run_scenario()
    with database.for_tenant("us").connect_for_reading() as connection:
        for table, memory in ((cards, make_card()), (failures, make_failure())):
            [row] = connection.execute(select(table)).all()
            filed = (row.id, row.tenant, row.repo, row.run_id, row.attempt, row.key, row.family, row.created)
            assert filed == (memory.id, "us", "bank", "run-1", 1, make_signature().key, make_signature().family, 77.0)
            assert row.body == memory.model_dump_json()


def test_run_is_stored_with_its_parent_and_tenant(database: Database) -> None:
    child = make_state(spec=make_spec(tenant="us", parent="run-0"))
    asyncio.run(SqlStore(database.for_tenant("us"), Clock()).create(child, folder="/home/shop", created=DAWN))
    with database.for_tenant("us").connect_for_reading() as connection:
        [row] = connection.execute(select(runs)).all()
    assert (row.tenant, row.parent, row.fence, row.version, row.control) == ("us", "run-0", 0, 0, "")


def test_unreadable_run_of_another_version_raises_a_store_error(database: Database) -> None:
    store = SqlStore(database, Clock())
    asyncio.run(store.create(make_state(), folder="/home/shop", created=DAWN))
    with database.connect_for_writing() as connection:
        connection.execute(update(runs).values(state='{"run_id": "run-1", "colour": "red"}'))
    with pytest.raises(StoreError, match="a RunState in the run store cannot be read") as caught:
        asyncio.run(store.load("run-1"))
    assert caught.value.remedy


def test_null_characters_are_removed_in_every_store(database: Database) -> None:
    async def run_scenario() -> None:
        store = SqlStore(database, Clock())
        await store.create(make_state(spec=make_spec(goal="make\0it")), folder="/home/shop", created=DAWN)
        await store.send_message("run-1", PersonWord.say, "zero\0byte", version=0)
        assert [row.goal for row in await store.list_runs()] == ["makeit"]
        assert [message.text for message in await store.list_messages("run-1")] == ["zerobyte"]
        assert (await store.load("run-1")).spec.goal == "make\0it"

    asyncio.run(run_scenario())


@pytest.mark.parametrize(
    ("stored", "result", "status"),
    [
        ("running", "", Status.running),
        ("paused", "", Status.paused),
        ("paused", "needs_human", Status.needs_input),
        ("ended", "verified", Status.finished),
    ],
)
def test_row_of_an_earlier_version_can_be_read(tmp_path, stored, result, status):
    with Database.open(tmp_path / "redstart.db") as database:
        store = SqlStore(database, Clock())
        asyncio.run(store.create(make_state(), folder="/home/shop", created=DAWN))
        with closing(sqlite3.connect(tmp_path / "redstart.db", isolation_level=None)) as connection:
            (text,) = connection.execute("select state from runs").fetchone()
            old = json.loads(text) | {"status": stored, "result": result or None}
            del old["format"], old["spec"]["format"]
            old["spec"]["limits"]["iterations"] = old["spec"]["limits"].pop("attempts") + 2
            row = (stored, result, json.dumps(old))
            connection.execute("update runs set status = ?, result = ?, state = ?", row)
        (row,) = asyncio.run(store.list_runs())
        loaded_state = asyncio.run(store.load("run-1"))
    assert (row.status, row.options, row.stop) == (status, None, None)
    assert (loaded_state.status, loaded_state.spec.limits.attempts) == (status, 7)
