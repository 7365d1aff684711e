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
from redstart.core.learning import NewMemories, build_similarity_text
from redstart.core.lesson import LessonDraw, LessonDraws, LessonScope
from redstart.core.run import Attempt, Result, Status, Step
from redstart.ports.memory.hashing import HashingEmbedder, embed_text
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
from redstart.testing.states import (
    commit,
    make_card,
    make_failure,
    make_lesson,
    make_pattern,
    make_signature,
    make_spec,
    make_state,
    record,
)


@pytest.fixture
def database(new_postgres: Callable[[], str]) -> Iterator[Database]:
    with Database.open(new_postgres()) as database:
        yield database


def fill_tables(database: Database) -> None:
    """Insert rows of the tenant `home` into every table."""

    async def run_scenario() -> None:
        store = SqlStore(database, Clock())
        new, fence = await begin(store)
        await SqlJournal(database).add(record(CallPlace("run-1", 1, "patch", 0)), fence)
        edit_records = (EditRecord(kind=EditKind.diff, rung=EditFit.exact),)
        attempt = Attempt(entry=Step.patch, patch=Patch(model="a:1"), apply=ApplyResult(ok=True, rungs=edit_records))
        memories = NewMemories(card=make_card(), failure=make_failure(), lesson=make_lesson(), pattern=make_pattern())
        lesson_draws = LessonDraws(coins=(LessonDraw(lesson="lesson-1", shown=True, probability=0.5),))
        end_fields = {"status": Status.finished, "result": Result.verified, "taught": lesson_draws}
        await store.commit(commit(new, Step.apply, events=1, now=attempt, remembered=memories, **end_fields), fence)
        await store.send_message("run-1", PersonWord.say, "hello", version=1)

    asyncio.run(run_scenario())
    memory = SqlMemory(database, HashingEmbedder())
    asyncio.run(memory.recall(make_signature(), tenant="home", repo="shop"))
    asyncio.run(memory.recall_patterns(make_pattern().goal, tenant="home", repo="shop"))
    SqlBlobs(database).put(b"one")
    SqlRates(database).take("model", 1, 60, 0.0)
    trials = SqlTrials(database, Clock())
    trials.begin("one", "plan")
    trials.assign("one", EvaluationTrial("a", 0, 1), "run-1")


def count_rows(database: Database) -> dict[str, int]:
    with database.connect_for_reading() as connection:
        return {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in metadata.tables}


def test_query_without_a_tenant_sees_only_its_own_rows(database: Database) -> None:
    fill_tables(database)
    row_counts = count_rows(database)
    assert all(row_counts.values())
    other_database = database.for_tenant("other")
    assert count_rows(other_database) == dict.fromkeys(metadata.tables, 0)
    with other_database.connect_for_writing() as connection:
        for name in metadata.tables:
            assert connection.execute(text(f"UPDATE {name} SET tenant = tenant")).rowcount == 0
            assert connection.execute(text(f"DELETE FROM {name}")).rowcount == 0
    assert count_rows(database) == row_counts, "the same connection, switched back to its tenant"


def test_global_lesson_is_readable_by_all_but_changed_only_by_its_owner(database: Database) -> None:
    fill_tables(database)
    shared_lesson = make_lesson(scope=LessonScope.everyone)
    assert asyncio.run(SqlLessonStore(database).put(shared_lesson))
    other_database = database.for_tenant("other")
    assert count_rows(other_database) == {**dict.fromkeys(metadata.tables, 0), "lessons": 1}
    assert asyncio.run(SqlLessonStore(other_database).list_lessons()) == [shared_lesson]
    assert not asyncio.run(SqlLessonStore(other_database).put(shared_lesson.model_copy(update={"advice": "mine"})))
    assert asyncio.run(SqlLessonStore(other_database).forget(shared_lesson.id)) is None
    with other_database.connect_for_writing() as connection:
        assert connection.execute(text("UPDATE lessons SET tenant = 'other'")).rowcount == 0
        assert connection.execute(text("DELETE FROM lessons")).rowcount == 0
    assert asyncio.run(SqlLessonStore(database).list_lessons()) == [shared_lesson]


def test_row_cannot_be_moved_to_another_tenant(database: Database) -> None:
    fill_tables(database)
    with pytest.raises(StoreError, match="row-level security"), database.connect_for_writing() as connection:
        connection.execute(text("UPDATE rates SET tenant = 'other'"))
    with pytest.raises(StoreError, match="row-level security"), database.connect_for_statement() as connection:
        connection.execute(text("INSERT INTO rates VALUES ('other', 'model', 1, 1)"))
    assert count_rows(database.for_tenant("other"))["rates"] == 0


def test_connection_without_a_tenant_sees_no_rows(database: Database) -> None:
    fill_tables(database)
    with database.engine.connect() as connection:
        connection.execute(text("RESET redstart.tenant"))
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 0
        connection.invalidate()


def test_rollback_resets_the_tenant(database: Database) -> None:
    fill_tables(database)
    with pytest.raises(KeyError), database.for_tenant("other").connect_for_writing():
        raise KeyError
    assert count_rows(database.for_tenant("other"))["runs"] == 0
    assert count_rows(database)["runs"] == 1


def test_tests_do_not_run_as_superuser(database: Database) -> None:
    with database.connect_for_reading() as connection:
        role_query = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(text(role_query)).scalar() is False
        table_query = "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity"
        assert set(connection.execute(text(table_query)).scalars()) == set(metadata.tables)


@pytest.mark.parametrize("template", ["template1", "template0"])
def test_recall_is_the_same_with_and_without_pgvector(postgres: Postgres, template: str) -> None:
    name = f"plain_{template}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    with Database.open(postgres.build_url(name)) as database:
        kind = "SELECT data_type, udt_name FROM information_schema.columns WHERE column_name = 'embedding'"
        with database.connect_for_reading() as connection:
            column_types = connection.execute(text(kind)).all()
        assert column_types == [("USER-DEFINED", "vector") if template == "template1" else ("ARRAY", "_float4")] * 2
        store, memory = SqlStore(database, Clock()), SqlMemory(database, HashingEmbedder())
        alike = make_signature(message="KeyError: 'prices'")
        unrelated = make_signature(
            exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean"
        )

        async def run_scenario() -> list[tuple[str, str, float]]:
            for number, failure_signature in enumerate(
                (alike, unrelated, make_signature(frame="shop/cart.py:Cart.sum"))
            ):
                new, fence = await begin(store, f"run-{number}")
                goal = ("Sort CSV files by column", "A snake game", make_pattern().goal)[number]
                memories = NewMemories(
                    card=make_card(f"card-{number}", failure_signature, signature=failure_signature),
                    pattern=make_pattern(f"pattern-{number}", goal=goal),
                )
                await store.commit(commit(new, Step.remember, remembered=memories), fence)
            recalled_patterns = await memory.recall_patterns(make_pattern().goal, tenant="home", repo="shop")
            assert [item.pattern.id for item in recalled_patterns] == ["pattern-2", "pattern-0"]
            first_vector, second_vector = (embed_text(hit.pattern.likeness) for hit in recalled_patterns)
            assert [hit.likeness for hit in recalled_patterns] == pytest.approx(
                [1.0, sum(map(mul, first_vector, second_vector))], abs=1e-3
            )
            recalled_cards = await memory.recall(make_signature(), tenant="home", repo="shop")
            return [(item.card.id, item.source, round(item.score, 3)) for item in recalled_cards]

        results = asyncio.run(run_scenario())
    expected_likeness = sum(
        map(mul, embed_text(build_similarity_text(make_signature())), embed_text(make_card(signature=alike).likeness))
    )
    assert results == [("card-2", "family", 0.5), ("card-0", "likeness", round(expected_likeness / 2, 3))]


@pytest.mark.slow
async def test_connection_recovers_after_a_server_restart(tmp_path: Path) -> None:
    with serve_postgres(tmp_path / "server") as server, Database.open(server.url) as database:
        store = SqlStore(database, Clock())
        new, fence = await begin(store)
        for restart in (server.restart, lambda: (server.kill(), server.start())):
            with database.connect_for_reading(), database.connect_for_reading():
                pass  # opens two connections, both of which die
            restart()
            step_commit = commit(new)
            await store.commit(step_commit, fence)
            new = step_commit.after
        assert await store.load("run-1") == new
        server.stop()
        with pytest.raises(StoreError, match="connection") as caught:
            await store.load("run-1")
        assert server.url.split(":")[2].split("@")[0] not in str(caught.value), "no password"
        server.start()
        assert await store.load("run-1") == new


def test_lost_connection_raises_a_store_error_and_the_next_call_works(database: Database) -> None:
    with pytest.raises(StoreError), database.connect_for_reading() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert count_rows(database)["runs"] == 0


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


def test_store_calls_take_one_round_trip_and_a_claim_takes_two(new_postgres: Callable[[], str]) -> None:
    url = new_postgres()
    port = int(url.rpartition(":")[2].partition("/")[0])
    wire = Wire(port)
    trips: dict[str, list[int]] = {}

    async def run_scenario(database: Database) -> None:
        async def count_trips(name: str, call: object) -> object:
            trips_before = wire.trips
            result = await call  # pyright: ignore[reportGeneralTypeIssues]
            trips.setdefault(name, []).append(wire.trips - trips_before)
            return result

        store, journal = SqlStore(database, Clock()), SqlJournal(database)
        for number in range(12):
            run_id = f"run-{number}"
            await count_trips("create", store.create(make_state(run_id=run_id), folder="/x", created=DAWN))
            claimed_state, fence = await count_trips("claim", store.claim(run_id))  # pyright: ignore[reportGeneralTypeIssues]
            await count_trips("find", journal.list_step(CallPlace(run_id, 1, "patch", 0)))
            await count_trips("add", journal.add(record(CallPlace(run_id, 1, "patch", 0)), fence))
            step_commit = commit(claimed_state, events=5)
            await count_trips("commit", store.commit(step_commit, fence))
            edit_records = (EditRecord(kind=EditKind.diff, rung=EditFit.exact), EditRecord(kind=EditKind.block))
            attempt = Attempt(
                entry=Step.patch, patch=Patch(model="a:1"), apply=ApplyResult(ok=True, rungs=edit_records)
            )
            memories = NewMemories(card=make_card(f"card {number}"), failure=make_failure(f"failure {number}"))
            await count_trips(
                "learn", store.commit(commit(step_commit.after, Step.apply, now=attempt, remembered=memories), fence)
            )
            await count_trips("load", store.load(run_id))
            await count_trips("list", store.list_runs(limit=5))
            await count_trips("release", store.release(run_id, fence))
        assert await store.count_fits("a:1", tenant="home") == {EditKind.diff: (12, 12), EditKind.block: (0, 12)}

    with wire.open(), Database.open(url.replace(f":{port}/", f":{wire.port}/")) as database:
        asyncio.run(run_scenario(database))
    # The first call also sets the connection's tenant. After some calls the driver has the server store the plan of
    # a statement, which is one more round trip, once.
    # A claim reads the run first, so that a run in a newer format stays unchanged.
    expected_trips = dict.fromkeys(trips, 1) | {"claim": 2}
    assert {name: counts[-1] for name, counts in trips.items()} == expected_trips
    assert {name for name, counts in trips.items() if sum(counts[1:]) > len(counts) * expected_trips[name]} == set()
    assert len(trips) == 9


@pytest.mark.parametrize("url", ["postgresql://u:secret@h:port/d", "mysql://u:secret@h/d", "nonsense secret"])
def test_invalid_address_is_reported_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError, match="address") as caught:
        Database.open(url)
    assert "secret" not in f"{caught.value} {caught.value.remedy}"


def test_missing_database_raises_a_store_error(new_postgres: Callable[[], str]) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        Database.open(new_postgres().rpartition("/")[0] + "/nowhere")


def test_state_of_64_kb_is_stored(database: Database) -> None:
    large = make_state(spec=make_spec(goal="x" * 4000, before=("y" * 7000,) * 8))
    asyncio.run(SqlStore(database, Clock()).create(large, folder="", created=DAWN))
    assert asyncio.run(SqlStore(database, Clock()).load("run-1")) == large
