"""What the ports do not show of the tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from sqlalchemy import ClauseElement, event, select, update
from sqlalchemy.dialects import postgresql

from redstart.core.errors import StoreError
from redstart.core.learning import Remembered
from redstart.core.run import Step
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.schema import cards, failures, runs
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port import Call, Control, Word
from redstart.testing.contracts.store import DAWN, begin
from redstart.testing.states import card, commit, failure, record, signature, spec, state
from redstart.testing.store import Clock

Params = Sequence[Mapping[str, object]]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as database:
        yield database


def test_what_was_learned_is_filed_under_its_run(database: Database) -> None:
    async def scenario() -> None:
        store = SqlStore(database, Clock(77.0))
        new, fence = await begin(store, spec=spec(tenant="us", repo="bank"))
        await store.commit(commit(new, Step.remember, remembered=Remembered(card=card(), failure=failure())), fence)

    asyncio.run(scenario())
    with database.reading() as connection:
        for table, left in ((cards, card()), (failures, failure())):
            [row] = connection.execute(select(table)).all()
            filed = (row.id, row.tenant, row.repo, row.run_id, row.attempt, row.key, row.family, row.created)
            assert filed == (left.id, "us", "bank", "run-1", 1, signature().key, signature().family, 77.0)
            assert row.body == left.model_dump_json()


def test_a_run_is_filed_under_its_parent_and_tenant(database: Database) -> None:
    child = state(spec=spec(tenant="us", parent="run-0"))
    asyncio.run(SqlStore(database, Clock()).create(child, folder="/home/shop", created=DAWN))
    with database.reading() as connection:
        [row] = connection.execute(select(runs)).all()
    assert (row.tenant, row.parent, row.fence, row.version, row.control) == ("us", "run-0", 0, 0, "")


def test_a_run_that_another_version_kept_is_a_store_error(database: Database) -> None:
    store = SqlStore(database, Clock())
    asyncio.run(store.create(state(), folder="/home/shop", created=DAWN))
    with database.writing() as connection:
        connection.execute(update(runs).values(state='{"run_id": "run-1", "colour": "red"}'))
    with pytest.raises(StoreError, match="a RunState in the run store cannot be read") as raised:
        asyncio.run(store.load("run-1"))
    assert raised.value.remedy


def test_every_statement_is_valid_for_postgres_too(database: Database) -> None:
    """Each statement that the adapters make is compiled for Postgres, where no server is at hand to run it."""
    seen: list[str] = []

    def compiled(
        _connection: object, statement: object, many: Params, one: Mapping[str, object], _options: object
    ) -> None:
        if isinstance(statement, ClauseElement):
            columns = list(many[0] if many else one)
            seen.append(str(statement.compile(dialect=postgresql.dialect(), column_keys=columns)))

    async def scenario() -> None:
        store, journal, memory = SqlStore(database, Clock()), SqlJournal(database), SqlMemory(database)
        new, fence = await begin(store)
        one = commit(new, Step.remember, remembered=Remembered(card=card(), failure=failure()))
        await store.commit(one, fence)
        await store.control("run-1", Control.pause)
        await store.tell("run-1", Word.say, "hello", version=1)
        await store.told("run-1")
        await store.holder("run-1")
        await store.load("run-1")
        await store.first("run-1")
        await store.steps("run-1")
        await store.events("run-1")
        await store.runs(folder="/home/shop", prefix="run")
        call = Call("run-1", 1, "patch", 0)
        await journal.add(record(call), fence)
        await journal.find(call)
        await journal.records("run-1")
        await journal.discard(call, fence)
        await memory.recall(signature(), tenant="home", repo="shop")

    event.listen(database.engine, "before_execute", compiled)
    asyncio.run(scenario())
    assert len(seen) > 15
    assert any("UPDATE runs SET" in statement and "RETURNING" in statement for statement in seen)
    locked = [statement for statement in seen if "FOR UPDATE" in statement]
    assert len(locked) == 3, "the journal and a teller hold the run while they write"
