"""What only a server has: dying connections, hidden rows, and round trips."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import mul
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from redstart.app.servers.postgres import Postgres, serve_postgres
from redstart.core.change import ApplyResult, EditFit, EditKind, EditRecord, Patch
from redstart.core.errors import ConfigError, StoreError
from redstart.core.learning import NewMemories, likeness
from redstart.core.lesson import LessonDraw, LessonDraws, LessonScope
from redstart.core.run import Attempt, Result, Status, Step
from redstart.ports.memory.hashing import HashingEmbedder, embedded
from redstart.ports.sql.blobs import SqlBlobs
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.rates import SqlRates
from redstart.ports.sql.schema import metadata
from redstart.ports.sql.store import SqlStore
from redstart.ports.sql.trials import SqlTrials
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.runs import PersonWord
from redstart.ports.trials.port import EvaluationTrial
from redstart.testing.contracts.store import DAWN, Clock, begin
from redstart.testing.states import card, commit, failure, lesson, pattern, record, signature, spec, state


@pytest.fixture
def database(new_postgres: Callable[[], str]) -> Iterator[Database]:
    with Database.open(new_postgres()) as database:
        yield database


def filled(database: Database) -> None:
    """Insert rows of the tenant `home` into every table."""

    async def scenario() -> None:
        store = SqlStore(database, Clock())
        new, fence = await begin(store)
        await SqlJournal(database).add(record(CallPlace("run-1", 1, "patch", 0)), fence)
        rungs = (EditRecord(kind=EditKind.diff, rung=EditFit.exact),)
        tried = Attempt(entry=Step.patch, patch=Patch(model="a:1"), apply=ApplyResult(ok=True, rungs=rungs))
        left = NewMemories(card=card(), failure=failure(), lesson=lesson(), pattern=pattern())
        taught = LessonDraws(coins=(LessonDraw(lesson="lesson-1", shown=True, probability=0.5),))
        ended = {"status": Status.finished, "result": Result.verified, "taught": taught}
        await store.commit(commit(new, Step.apply, events=1, now=tried, remembered=left, **ended), fence)
        await store.tell("run-1", PersonWord.say, "hello", version=1)

    asyncio.run(scenario())
    memory = SqlMemory(database, HashingEmbedder())
    asyncio.run(memory.recall(signature(), tenant="home", repo="shop"))
    asyncio.run(memory.patterns(pattern().goal, tenant="home", repo="shop"))
    SqlBlobs(database).put(b"one")
    SqlRates(database).take("model", 1, 60, 0.0)
    trials = SqlTrials(database, Clock())
    trials.begin("one", "plan")
    trials.assign("one", EvaluationTrial("a", 0, 1), "run-1")


def counted(database: Database) -> dict[str, int]:
    with database.reading() as connection:
        return {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in metadata.tables}


def test_a_query_that_names_no_tenant_sees_only_its_own(database: Database) -> None:
    filled(database)
    kept = counted(database)
    assert all(kept.values())
    others = database.of("other")
    assert counted(others) == dict.fromkeys(metadata.tables, 0)
    with others.writing() as connection:
        for name in metadata.tables:
            assert connection.execute(text(f"UPDATE {name} SET tenant = tenant")).rowcount == 0
            assert connection.execute(text(f"DELETE FROM {name}")).rowcount == 0
    assert counted(database) == kept, "the same connection, switched back to its tenant"


def test_a_lesson_for_everyone_is_read_by_all_and_changed_by_its_own(database: Database) -> None:
    filled(database)
    wide = lesson(scope=LessonScope.everyone)
    assert asyncio.run(SqlLessonStore(database).put(wide))
    others = database.of("other")
    assert counted(others) == {**dict.fromkeys(metadata.tables, 0), "lessons": 1}
    assert asyncio.run(SqlLessonStore(others).lessons()) == [wide]
    assert not asyncio.run(SqlLessonStore(others).put(wide.model_copy(update={"advice": "mine"})))
    assert asyncio.run(SqlLessonStore(others).forget(wide.id)) is None
    with others.writing() as connection:
        assert connection.execute(text("UPDATE lessons SET tenant = 'other'")).rowcount == 0
        assert connection.execute(text("DELETE FROM lessons")).rowcount == 0
    assert asyncio.run(SqlLessonStore(database).lessons()) == [wide]


def test_a_row_cannot_be_given_to_another_tenant(database: Database) -> None:
    filled(database)
    with pytest.raises(StoreError, match="row-level security"), database.writing() as connection:
        connection.execute(text("UPDATE rates SET tenant = 'other'"))
    with pytest.raises(StoreError, match="row-level security"), database.single() as connection:
        connection.execute(text("INSERT INTO rates VALUES ('other', 'model', 1, 1)"))
    assert counted(database.of("other"))["rates"] == 0


def test_who_was_told_nothing_sees_nothing(database: Database) -> None:
    filled(database)
    with database.engine.connect() as connection:
        connection.execute(text("RESET redstart.tenant"))
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 0
        connection.invalidate()


def test_a_transaction_that_is_rolled_back_leaves_the_tenant(database: Database) -> None:
    filled(database)
    with pytest.raises(KeyError), database.of("other").writing():
        raise KeyError
    assert counted(database.of("other"))["runs"] == 0
    assert counted(database)["runs"] == 1


def test_the_tests_are_no_superuser(database: Database) -> None:
    with database.reading() as connection:
        who = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(text(who)).scalar() is False
        kept = "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity"
        assert set(connection.execute(text(kept)).scalars()) == set(metadata.tables)


@pytest.mark.parametrize("template", ["template1", "template0"])
def test_recall_is_the_same_with_and_without_pgvector(postgres: Postgres, template: str) -> None:
    name = f"plain_{template}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    with Database.open(postgres.url_of(name)) as database:
        kind = "SELECT data_type, udt_name FROM information_schema.columns WHERE column_name = 'embedding'"
        with database.reading() as connection:
            made = connection.execute(text(kind)).all()
        assert made == [("USER-DEFINED", "vector") if template == "template1" else ("ARRAY", "_float4")] * 2
        store, memory = SqlStore(database, Clock()), SqlMemory(database, HashingEmbedder())
        alike = signature(message="KeyError: 'prices'")
        strange = signature(exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean")

        async def scenario() -> list[tuple[str, str, float]]:
            for number, of in enumerate((alike, strange, signature(frame="shop/cart.py:Cart.sum"))):
                new, fence = await begin(store, f"run-{number}")
                goal = ("Sort CSV files by column", "A snake game", pattern().goal)[number]
                left = NewMemories(
                    card=card(f"card-{number}", of, signature=of), pattern=pattern(f"pattern-{number}", goal=goal)
                )
                await store.commit(commit(new, Step.remember, remembered=left), fence)
            reached = await memory.patterns(pattern().goal, tenant="home", repo="shop")
            assert [item.pattern.id for item in reached] == ["pattern-2", "pattern-0"]
            one, other = (embedded(each.pattern.likeness) for each in reached)
            assert [each.likeness for each in reached] == pytest.approx([1.0, sum(map(mul, one, other))], abs=1e-3)
            found = await memory.recall(signature(), tenant="home", repo="shop")
            return [(item.card.id, item.source, round(item.score, 3)) for item in found]

        found = asyncio.run(scenario())
    likeness_of = sum(map(mul, embedded(likeness(signature())), embedded(card(signature=alike).likeness)))
    assert found == [("card-2", "family", 0.5), ("card-0", "likeness", round(likeness_of / 2, 3))]


@pytest.mark.slow
def test_a_server_that_was_restarted_is_found_again_without_an_error(tmp_path: Path) -> None:
    with serve_postgres(tmp_path / "server") as server, Database.open(server.url) as database:
        store = SqlStore(database, Clock())
        new, fence = asyncio.run(begin(store))
        for again in (server.restart, lambda: (server.kill(), server.start())):
            with database.reading(), database.reading():
                pass  # opens two connections, both of which die
            again()
            done = commit(new)
            asyncio.run(store.commit(done, fence))
            new = done.after
        assert asyncio.run(store.load("run-1")) == new
        server.stop()
        with pytest.raises(StoreError, match="connection") as raised:
            asyncio.run(store.load("run-1"))
        assert server.url.split(":")[2].split("@")[0] not in str(raised.value), "no password"
        server.start()
        assert asyncio.run(store.load("run-1")) == new


def test_a_connection_that_dies_in_a_statement_is_a_store_error_and_the_next_call_works(database: Database) -> None:
    with pytest.raises(StoreError), database.reading() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert counted(database)["runs"] == 0


class Wire:
    """A proxy that counts round trips: data sent to the server after the server has spoken."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.trips = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def serve(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            server_spoke = True
            while True:
                for item in select.select([client, server], [], [])[0]:
                    data = item.recv(1 << 16)
                    if not data:
                        return
                    self.trips += item is client and server_spoke
                    server_spoke = item is server
                    (server if item is client else client).sendall(data)

    @contextmanager
    def open(self) -> Iterator[Wire]:
        thread = threading.Thread(target=self.serve)
        thread.start()
        yield self
        thread.join()
        self._listener.close()


def test_each_of_these_is_one_round_trip_and_a_claim_is_two(new_postgres: Callable[[], str]) -> None:
    url = new_postgres()
    port = int(url.rpartition(":")[2].partition("/")[0])
    wire = Wire(port)
    trips: dict[str, list[int]] = {}

    async def scenario(database: Database) -> None:
        async def counted(name: str, call: object) -> object:
            before = wire.trips
            result = await call  # pyright: ignore[reportGeneralTypeIssues]
            trips.setdefault(name, []).append(wire.trips - before)
            return result

        store, journal = SqlStore(database, Clock()), SqlJournal(database)
        for number in range(12):
            run_id = f"run-{number}"
            await counted("create", store.create(state(run_id=run_id), folder="/x", created=DAWN))
            now, fence = await counted("claim", store.claim(run_id))  # pyright: ignore[reportGeneralTypeIssues]
            await counted("find", journal.find(CallPlace(run_id, 1, "patch", 0)))
            await counted("add", journal.add(record(CallPlace(run_id, 1, "patch", 0)), fence))
            plain = commit(now, events=5)
            await counted("commit", store.commit(plain, fence))
            rungs = (EditRecord(kind=EditKind.diff, rung=EditFit.exact), EditRecord(kind=EditKind.block))
            tried = Attempt(entry=Step.patch, patch=Patch(model="a:1"), apply=ApplyResult(ok=True, rungs=rungs))
            left = NewMemories(card=card(f"card {number}"), failure=failure(f"failure {number}"))
            await counted("learn", store.commit(commit(plain.after, Step.apply, now=tried, remembered=left), fence))
            await counted("load", store.load(run_id))
            await counted("list", store.runs(limit=5))
            await counted("release", store.release(run_id, fence))
        assert await store.tally("a:1", tenant="home") == {EditKind.diff: (12, 12), EditKind.block: (0, 12)}

    with wire.open(), Database.open(url.replace(f":{port}/", f":{wire.port}/")) as database:
        asyncio.run(scenario(database))
    # The first call also sets the connection's tenant. After some calls the driver has the server store the plan of
    # a statement, which is one more round trip, once.
    # A claim reads the run first, so that a run in a newer format stays unchanged.
    wanted = dict.fromkeys(trips, 1) | {"claim": 2}
    assert {name: counts[-1] for name, counts in trips.items()} == wanted
    assert {name for name, counts in trips.items() if sum(counts[1:]) > len(counts) * wanted[name]} == set()
    assert len(trips) == 9


@pytest.mark.parametrize("url", ["postgresql://u:secret@h:port/d", "mysql://u:secret@h/d", "nonsense secret"])
def test_an_address_that_is_none_is_told_without_what_it_holds(url: str) -> None:
    with pytest.raises(ConfigError, match="address") as raised:
        Database.open(url)
    assert "secret" not in f"{raised.value} {raised.value.remedy}"


def test_a_database_that_is_not_there_is_a_store_error(new_postgres: Callable[[], str]) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        Database.open(new_postgres().rpartition("/")[0] + "/nowhere")


def test_a_state_of_64_kb_is_kept(database: Database) -> None:
    large = state(spec=spec(goal="x" * 4000, before=("y" * 7000,) * 8))
    asyncio.run(SqlStore(database, Clock()).create(large, folder="", created=DAWN))
    assert asyncio.run(SqlStore(database, Clock()).load("run-1")) == large
