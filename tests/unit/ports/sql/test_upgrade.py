"""A database of an earlier version with an unfinished run whose driver is still at work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from redstart.core.learning import CardState, NewMemories
from redstart.core.run import Result, RunState, Step
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.ports.sql.trials import SqlTrials
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import commit, make_card, make_signature
from support import rig as play
from support.engine_contract import mask_run
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

Left = Callable[[str, Path | str, Database], None]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def use_database(rig: Rig, database: Database) -> None:
    """Make the rig store its runs in this database."""
    store, journal, memory = SqlStore(database, Clock()), SqlJournal(database), SqlMemory(database, HashingEmbedder())
    rig.adapters = replace(rig.adapters, store=store, journal=journal, memory=memory)


async def drive_run(rig: Rig, run_id: str, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline, until)).state


@pytest.fixture(params=["0003", "0005"])
def before(request: pytest.FixtureRequest) -> str:
    """Return an older revision: of the previous version, or of the last version without tenants."""
    return request.param


def create_patched_run(rig: Rig, where: Path | str, tmp_path: Path, left: Left, revision: str) -> str:
    """Create a run that has patched, in a database of that revision; return its ID."""
    with Database.open(tmp_path / "now.db") as current_database:
        use_database(rig, current_database)
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin())
        asyncio.run(drive_run(rig, run_id, Step.patch))
        asyncio.run(rig.adapters.store.send_message(run_id, PersonWord.say, "mind the sum", version=0))
        left(revision, where, current_database)
    return run_id


def test_unfinished_run_finishes_after_the_upgrade(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left, before: str
) -> None:
    run_id = create_patched_run(rig, where, tmp_path, left, before)
    twin_rig = rig.twin()
    twin_rig.with_model([play.WRONG, play.RIGHT, play.CARD])

    async def run_undisturbed() -> tuple[RunState, list[tuple[int, Step]]]:
        other_id = await twin_rig.begin()
        await drive_run(twin_rig, other_id, Step.patch)
        await twin_rig.adapters.store.send_message(other_id, PersonWord.say, "mind the sum", version=0)
        return await drive_run(twin_rig, other_id), await twin_rig.list_steps(other_id)

    state, trail = asyncio.run(run_undisturbed())
    with Database.open(where) as database:
        use_database(rig, database)
        final_state = asyncio.run(drive_run(rig, run_id))
        assert final_state.result is Result.verified
        assert mask_run(final_state) == mask_run(state)
        assert asyncio.run(rig.list_steps(run_id)) == trail
        assert [item.text for item in asyncio.run(rig.adapters.store.list_messages(run_id))] == ["mind the sum"]
        assert SqlTrials(database, Clock()).begin("one", "plan") == "plan", "an evaluation can begin there"


def test_cards_of_an_older_database_are_recalled_and_shown(
    where: Path | str, tmp_path: Path, left: Left, before: str
) -> None:
    with Database.open(tmp_path / "now.db") as current_database:
        store = SqlStore(current_database, Clock())

        async def learn() -> None:
            new, fence = await begin(store)
            await store.commit(commit(new, Step.remember, remembered=NewMemories(card=make_card())), fence)

        asyncio.run(learn())
        left(before, where, current_database)
    with Database.open(where) as database:
        memory = SqlMemory(database, HashingEmbedder())
        assert [item.card for item in asyncio.run(memory.recall(make_signature(), tenant="home", repo="shop"))] == [
            make_card()
        ]
        stored_card = asyncio.run(SqlCards(database).get_card("card-1"))
        assert stored_card is not None
        assert stored_card.state is CardState.shown


def test_card_stored_by_an_older_driver_is_recalled(where: Path | str, rig: Rig, tmp_path: Path, left: Left) -> None:
    run_id = create_patched_run(rig, where, tmp_path, left, "0005")
    with Database.open(where) as database:
        row = {
            "run_id": run_id,
            "key": make_signature().key,
            "family": make_signature().family,
            "body": make_card().model_dump_json(),
        }
        old = (
            "INSERT INTO cards (tenant, id, repo, run_id, attempt, key, family, body, created)"
            " VALUES ('home', 'card-1', 'shop', :run_id, 1, :key, :family, :body, 1.0)"
        )
        with open_old_connection(where) as connection, connection.begin():
            name_tenant(connection, is_known=True)
            connection.execute(text(old), row)
        memory = SqlMemory(database, HashingEmbedder())
        assert [item.card for item in asyncio.run(memory.recall(make_signature(), tenant="home", repo="shop"))] == [
            make_card()
        ]


class OldDriver:
    """A driver that writes as the previous version did: it knew no tenant but a run's own."""

    def __init__(self, connection: Connection, before: RunState, fence: int) -> None:
        self._connection, self._before, self._fence = connection, before, fence

    def commit(self) -> bool:
        """Commit a step; return whether it was written."""
        step_commit = commit(self._before, events=1)
        state = {
            "state": step_commit.after.model_dump_json(),
            "version": step_commit.after.version,
            "id": step_commit.after.run_id,
        }
        conditions = {"fence": self._fence, "before": self._before.version}
        advance = "UPDATE runs SET state = :state, version = :version WHERE id = :id AND fence = :fence"
        result = self._connection.execute(
            text(f"{advance} AND version = :before RETURNING control"), {**state, **conditions}
        )
        if result.first() is None:
            return False
        step = "INSERT INTO steps (run_id, version, attempt, step, artifact, state) VALUES (:id, :version, 1, 'test'"
        self._connection.execute(text(f"{step}, '{{}}', :state)"), state)
        event_row = {
            "id": step_commit.after.run_id,
            "seq": step_commit.events[0].seq,
            "body": step_commit.events[0].model_dump_json(),
        }
        self._connection.execute(text("INSERT INTO events (run_id, seq, body) VALUES (:id, :seq, :body)"), event_row)
        return True


@contextmanager
def open_old_connection(where: Path | str) -> Iterator[Connection]:
    url = f"sqlite:///{where}" if isinstance(where, Path) else where.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def name_tenant(connection: Connection, *, is_known: bool) -> None:
    """Set the tenant of the connection, as programs with tenants do."""
    if is_known and connection.dialect.name == "postgresql":
        connection.execute(text("SELECT set_config('redstart.tenant', 'home', false)"))


def load_state(connection: Connection, run_id: str) -> tuple[RunState, int]:
    row = connection.execute(text("SELECT state, fence FROM runs WHERE id = :id"), {"id": run_id}).one()
    return RunState.model_validate_json(row.state), row.fence


def test_write_of_an_older_driver_during_the_upgrade_is_not_lost(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left
) -> None:
    """For a revision that rebuilds tables; one that only adds tables blocks nobody in Postgres."""
    run_id = create_patched_run(rig, where, tmp_path, left, "0003")
    databases: list[Database] = []
    upgrade = threading.Thread(target=lambda: databases.append(Database.open(where)))
    with open_old_connection(where) as connection:
        state_before, fence = load_state(connection, run_id)
        assert OldDriver(connection, state_before, fence).commit()
        upgrade.start()
        upgrade.join(0.5)  # it waits until the old driver is done, however long that takes
        assert upgrade.is_alive()
        connection.commit()
    upgrade.join()
    with databases[0] as database:
        store = SqlStore(database, Clock())
        assert asyncio.run(store.load(run_id)).version == state_before.version + 1
        assert len(asyncio.run(store.list_steps(run_id))) == state_before.version + 1
        assert [event.seq for event in asyncio.run(store.list_events(run_id))] == list(range(state_before.seq + 1))


def test_older_driver_continues_or_learns_that_it_lost_the_run(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left, before: str
) -> None:
    run_id = create_patched_run(rig, where, tmp_path, left, before)
    knows_tenants = before != "0003"
    with open_old_connection(where) as connection, connection.begin():
        name_tenant(connection, is_known=knows_tenants)
        stood, fence = load_state(connection, run_id)
    with Database.open(where) as database:
        with open_old_connection(where) as connection, connection.begin():
            name_tenant(connection, is_known=knows_tenants)
            is_written = OldDriver(connection, stood, fence).commit()
        store = SqlStore(database, Clock())
        # In Postgres a connection without a tenant finds no rows, so the driver learns that it lost the run.
        assert is_written is (knows_tenants or not database.is_postgres)
        assert asyncio.run(store.load(run_id)).version == stood.version + is_written
        assert len(asyncio.run(store.list_steps(run_id))) == stood.version + is_written
