"""Edges between entries, as a real run stores them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import insert

from redstart.core.graph import FailingFile, KeptEdge, TypeInMonth
from redstart.core.learning import EdgeKind, NewMemories
from redstart.core.run import Result, RunState, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.schema import edges as edge_rows
from redstart.ports.sql.schema import failures
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import card, commit, spec
from support import rig as play
from support.rig import Kept, make_rig


@pytest.fixture
def database(made: Path | str) -> Iterator[Database]:
    with Database.open(made) as database:
        yield database


def two_attempts(database: Database, folder: Path) -> RunState:
    memory = SqlMemory(database, HashingEmbedder())
    kept = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlLessonStore(database))
    rig = make_rig(folder, lambda: kept)
    rig.with_model([play.WRONG, play.RIGHT, play.CARD])

    async def go() -> RunState:
        run_id = await rig.begin()
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    try:
        return asyncio.run(go())
    finally:
        rig.trees.close()


@pytest.mark.slow
def test_a_run_leaves_what_belongs_to_each_of_its_attempts(database: Database, tmp_path: Path) -> None:
    ended = two_attempts(database, tmp_path / "snapshots")
    assert ended.result is Result.verified
    run, one, two = ended.run_id, f"{ended.run_id}/1", f"{ended.run_id}/2"
    found = asyncio.run(SqlEdges(database).edges())
    assert len(set(found)) == len(found)

    def targets(kind: EdgeKind, source: str) -> set[str]:
        return {edge.target for edge in found if (edge.kind, edge.source) == (kind, source)}

    assert targets(EdgeKind.iteration, run) == {one, two}
    # A failed attempt with later attempts is remembered too; earlier results carry over to the next attempt.
    for iteration in (one, two):
        assert {"reproduce", "patch", "apply", "test", "remember"} <= targets(EdgeKind.step, iteration)
        assert targets(EdgeKind.changed_file, iteration) == {play.CODE}
        assert play.CODE in targets(EdgeKind.retrieved_file, iteration)
        assert targets(EdgeKind.bug_type, iteration) == {"AssertionError"}
        assert len(targets(EdgeKind.failure_signature, iteration)) == 1
    assert targets(EdgeKind.has_fix_card, one) == set()
    assert targets(EdgeKind.has_fix_card, two) == {f"{run}-2"}

    edges = SqlEdges(database)
    (key,) = targets(EdgeKind.failure_signature, one)
    (fix,) = asyncio.run(edges.fixes_of(key))
    assert (fix.card, fix.run, fix.signature, fix.files) == (f"{run}-2", run, key, (play.CODE,))
    assert (fix.state, fix.summary) == ("shown", json.loads(play.CARD)["summary"])
    (met,) = asyncio.run(edges.bug_types())
    assert (met.repo, met.type, met.runs) == ("rig", "AssertionError", 1)
    files = {item.path: item for item in asyncio.run(edges.files_in_failures())}
    assert (files[play.CODE].attempts, files[play.CODE].runs) == (1, 1), "the successful attempt is not a failure"
    assert asyncio.run(edges.files_in_failures(repo="another")) == []
    assert asyncio.run(edges.fixes_of(key, repo="another")) == []


def test_edges_are_of_a_repo_and_in_the_order_of_time(database: Database) -> None:
    clock = Clock()
    store = SqlStore(database, clock)

    async def scenario() -> list[KeptEdge]:
        for run_id, repo in (("run-b", "shop"), ("run-a", "shop"), ("run-c", "bank")):
            clock.time += 60
            new, fence = await begin(store, run_id, spec=spec(repo=repo))
            left = NewMemories(card=card(f"card of {run_id}"))
            await store.commit(commit(new, Step.remember, remembered=left), fence)
        return await SqlEdges(database).edges(repo="shop")

    found = asyncio.run(scenario())
    assert [item.target for item in found if item.kind is EdgeKind.has_fix_card] == ["card of run-b", "card of run-a"]


def put(database: Database, kind: EdgeKind, target: str, repo: str, attempt: str, when: datetime) -> None:
    """Insert an edge of a failed attempt, `RUN/NUMBER`."""
    run, number = attempt.split("/")
    mine = {"tenant": database.tenant, "run_id": run, "attempt": int(number), "repo": repo}
    row = {**mine, "kind": kind.value, "source": attempt, "target": target, "created": when.timestamp()}
    failed = {**mine, "id": attempt, "key": "", "family": "", "body": "{}", "created": when.timestamp()}
    with database.writing() as connection:
        connection.execute(insert(edge_rows), row)
        if connection.execute(failures.select().where(failures.c.id == attempt)).first() is None:
            connection.execute(insert(failures), failed)


def test_the_questions_keep_repos_months_and_tenants_apart(database: Database) -> None:
    old, new = datetime(2030, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC)
    changed, shown, met = EdgeKind.changed_file, EdgeKind.retrieved_file, EdgeKind.bug_type
    for kind, target, repo, attempt, when in (
        (changed, "app.py", "shop", "run-1/1", old),
        (shown, "app.py", "shop", "run-1/1", old),
        (changed, "app.py", "shop", "run-1/2", old),
        (changed, "app.py", "shop", "run-2/1", new),
        (changed, "it's; --.py", "shop", "run-2/1", new),
        (changed, "app.py", "bank", "run-3/1", new),
        (met, "KeyError", "shop", "run-1/1", old),
        (met, "KeyError", "shop", "run-1/2", old),
        (met, "KeyError", "shop", "run-2/1", new),
        (met, "KeyError", "bank", "run-3/1", new),
        (met, "Upset", "bank", "run-3/1", new),
    ):
        put(database, kind, target, repo, attempt, when)
    put(database.of("other"), changed, "app.py", "shop", "run-1/9", old)
    put(database.of("other"), met, "KeyError", "shop", "run-1/9", old)

    edges = SqlEdges(database)
    files = asyncio.run(edges.files_in_failures())
    assert files == [
        FailingFile(repo="shop", path="app.py", attempts=3, runs=2),
        FailingFile(repo="bank", path="app.py", attempts=1, runs=1),
        FailingFile(repo="shop", path="it's; --.py", attempts=1, runs=1),
    ]
    assert asyncio.run(edges.files_in_failures(repo="shop", limit=1)) == files[:1]
    types = asyncio.run(edges.bug_types())
    assert types == [
        TypeInMonth(repo="bank", month="2030-02", type="KeyError", runs=1),
        TypeInMonth(repo="bank", month="2030-02", type="Upset", runs=1),
        TypeInMonth(repo="shop", month="2030-02", type="KeyError", runs=1),
        TypeInMonth(repo="shop", month="2030-01", type="KeyError", runs=1),
    ]
    assert {item.repo for item in asyncio.run(edges.bug_types(repo="shop"))} == {"shop"}
