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
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.ports.sql.trials import SqlTrials
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import card, commit, signature
from support import rig as play
from support.engine_contract import comparable
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

Left = Callable[[str, Path | str, Database], None]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def on(rig: Rig, database: Database) -> None:
    """Make the rig store its runs in this database."""
    store, journal, memory = SqlStore(database, Clock()), SqlJournal(database), SqlMemory(database, HashingEmbedder())
    rig.adapters = replace(rig.adapters, store=store, journal=journal, memory=memory)


async def driven(rig: Rig, run_id: str, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline, until)).state


@pytest.fixture(params=["0003", "0005"])
def before(request: pytest.FixtureRequest) -> str:
    """Return an older revision: of the previous version, or of the last version without tenants."""
    return request.param


def half_done(rig: Rig, where: Path | str, tmp_path: Path, left: Left, revision: str) -> str:
    """Create a run that has patched, in a database of that revision; return its ID."""
    with Database.open(tmp_path / "now.db") as now:
        on(rig, now)
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin())
        asyncio.run(driven(rig, run_id, Step.patch))
        asyncio.run(rig.adapters.store.tell(run_id, PersonWord.say, "mind the sum", version=0))
        left(revision, where, now)
    return run_id


def test_a_run_that_was_half_done_is_finished(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left, before: str
) -> None:
    run_id = half_done(rig, where, tmp_path, left, before)
    plain = rig.twin()
    plain.with_model([play.WRONG, play.RIGHT, play.CARD])

    async def undisturbed() -> tuple[RunState, list[tuple[int, Step]]]:
        other = await plain.begin()
        await driven(plain, other, Step.patch)
        await plain.adapters.store.tell(other, PersonWord.say, "mind the sum", version=0)
        return await driven(plain, other), await plain.trail(other)

    state, trail = asyncio.run(undisturbed())
    with Database.open(where) as database:
        on(rig, database)
        ended = asyncio.run(driven(rig, run_id))
        assert ended.result is Result.verified
        assert comparable(ended) == comparable(state)
        assert asyncio.run(rig.trail(run_id)) == trail
        assert [item.text for item in asyncio.run(rig.adapters.store.told(run_id))] == ["mind the sum"]
        assert SqlTrials(database, Clock()).begin("one", "plan") == "plan", "an evaluation can begin there"


def test_cards_of_before_are_recalled_and_may_be_shown(
    where: Path | str, tmp_path: Path, left: Left, before: str
) -> None:
    with Database.open(tmp_path / "now.db") as now:
        store = SqlStore(now, Clock())

        async def learn() -> None:
            new, fence = await begin(store)
            await store.commit(commit(new, Step.remember, remembered=NewMemories(card=card())), fence)

        asyncio.run(learn())
        left(before, where, now)
    with Database.open(where) as database:
        memory = SqlMemory(database, HashingEmbedder())
        assert [item.card for item in asyncio.run(memory.recall(signature(), tenant="home", repo="shop"))] == [card()]
        kept = asyncio.run(SqlCards(database).card("card-1"))
        assert kept is not None
        assert kept.state is CardState.shown


def test_what_a_driver_of_the_version_before_learns_is_recalled(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left
) -> None:
    run_id = half_done(rig, where, tmp_path, left, "0005")
    with Database.open(where) as database:
        row = {"run_id": run_id, "key": signature().key, "family": signature().family, "body": card().model_dump_json()}
        old = (
            "INSERT INTO cards (tenant, id, repo, run_id, attempt, key, family, body, created)"
            " VALUES ('home', 'card-1', 'shop', :run_id, 1, :key, :family, :body, 1.0)"
        )
        with old_connection(where) as connection, connection.begin():
            name_tenant(connection, known=True)
            connection.execute(text(old), row)
        memory = SqlMemory(database, HashingEmbedder())
        assert [item.card for item in asyncio.run(memory.recall(signature(), tenant="home", repo="shop"))] == [card()]


class OldDriver:
    """A driver that writes as the previous version did: it knew no tenant but a run's own."""

    def __init__(self, connection: Connection, before: RunState, fence: int) -> None:
        self._connection, self._before, self._fence = connection, before, fence

    def commit(self) -> bool:
        """Commit a step; return whether it was written."""
        done = commit(self._before, events=1)
        state = {"state": done.after.model_dump_json(), "version": done.after.version, "id": done.after.run_id}
        held = {"fence": self._fence, "before": self._before.version}
        advance = "UPDATE runs SET state = :state, version = :version WHERE id = :id AND fence = :fence"
        found = self._connection.execute(text(f"{advance} AND version = :before RETURNING control"), {**state, **held})
        if found.first() is None:
            return False
        step = "INSERT INTO steps (run_id, version, attempt, step, artifact, state) VALUES (:id, :version, 1, 'test'"
        self._connection.execute(text(f"{step}, '{{}}', :state)"), state)
        said = {"id": done.after.run_id, "seq": done.events[0].seq, "body": done.events[0].model_dump_json()}
        self._connection.execute(text("INSERT INTO events (run_id, seq, body) VALUES (:id, :seq, :body)"), said)
        return True


@contextmanager
def old_connection(where: Path | str) -> Iterator[Connection]:
    url = f"sqlite:///{where}" if isinstance(where, Path) else where.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def name_tenant(connection: Connection, *, known: bool) -> None:
    """Set the tenant of the connection, as programs with tenants do."""
    if known and connection.dialect.name == "postgresql":
        connection.execute(text("SELECT set_config('redstart.tenant', 'home', false)"))


def stands_at(connection: Connection, run_id: str) -> tuple[RunState, int]:
    row = connection.execute(text("SELECT state, fence FROM runs WHERE id = :id"), {"id": run_id}).one()
    return RunState.model_validate_json(row.state), row.fence


def test_what_an_old_driver_writes_during_the_upgrade_is_not_lost(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left
) -> None:
    """For a revision that rebuilds tables; one that only adds tables blocks nobody in Postgres."""
    run_id = half_done(rig, where, tmp_path, left, "0003")
    opened: list[Database] = []
    upgrade = threading.Thread(target=lambda: opened.append(Database.open(where)))
    with old_connection(where) as connection:
        before, fence = stands_at(connection, run_id)
        assert OldDriver(connection, before, fence).commit()
        upgrade.start()
        upgrade.join(0.5)  # it waits until the old driver is done, however long that takes
        assert upgrade.is_alive()
        connection.commit()
    upgrade.join()
    with opened[0] as database:
        store = SqlStore(database, Clock())
        assert asyncio.run(store.load(run_id)).version == before.version + 1
        assert len(asyncio.run(store.steps(run_id))) == before.version + 1
        assert [event.seq for event in asyncio.run(store.events(run_id))] == list(range(before.seq + 1))


def test_an_old_driver_goes_on_or_is_told_that_it_lost_the_run(
    where: Path | str, rig: Rig, tmp_path: Path, left: Left, before: str
) -> None:
    run_id = half_done(rig, where, tmp_path, left, before)
    knows_tenants = before != "0003"
    with old_connection(where) as connection, connection.begin():
        name_tenant(connection, known=knows_tenants)
        stood, fence = stands_at(connection, run_id)
    with Database.open(where) as database:
        with old_connection(where) as connection, connection.begin():
            name_tenant(connection, known=knows_tenants)
            written = OldDriver(connection, stood, fence).commit()
        store = SqlStore(database, Clock())
        # In Postgres a connection without a tenant finds no rows, so the driver learns that it lost the run.
        assert written is (knows_tenants or not database.is_postgres)
        assert asyncio.run(store.load(run_id)).version == stood.version + written
        assert len(asyncio.run(store.steps(run_id))) == stood.version + written
