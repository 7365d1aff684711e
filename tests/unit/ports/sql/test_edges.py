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
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
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
from redstart.testing.states import commit, make_card, make_spec
from support import rig as play
from support.rig import Kept, make_rig


@pytest.fixture
def database(made: Path | str) -> Iterator[Database]:
    with Database.open(made) as database:
        yield database


def run_two_attempts(database: Database, folder: Path) -> RunState:
    memory = SqlMemory(database, HashingEmbedder())
    stores = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlLessonStore(database))
    rig = make_rig(folder, lambda: stores)
    rig.with_model([play.WRONG, play.RIGHT, play.CARD])

    async def go() -> RunState:
        run_id = await rig.begin()
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state

    try:
        return asyncio.run(go())
    finally:
        rig.trees.close()


@pytest.mark.slow
def test_run_stores_edges_for_each_attempt(database: Database, tmp_path: Path) -> None:
    final_state = run_two_attempts(database, tmp_path / "snapshots")
    assert final_state.result is Result.verified
    run, first_attempt, second_attempt = final_state.run_id, f"{final_state.run_id}/1", f"{final_state.run_id}/2"
    all_edges = asyncio.run(SqlEdges(database).list_edges())
    assert len(set(all_edges)) == len(all_edges)

    def find_targets(kind: EdgeKind, source: str) -> set[str]:
        return {edge.target for edge in all_edges if (edge.kind, edge.source) == (kind, source)}

    assert find_targets(EdgeKind.iteration, run) == {first_attempt, second_attempt}
    # A failed attempt with later attempts is remembered too; earlier results carry over to the next attempt.
    for iteration in (first_attempt, second_attempt):
        assert {"reproduce", "patch", "apply", "test", "remember"} <= find_targets(EdgeKind.step, iteration)
        assert find_targets(EdgeKind.changed_file, iteration) == {play.CODE}
        assert play.CODE in find_targets(EdgeKind.retrieved_file, iteration)
        assert find_targets(EdgeKind.bug_type, iteration) == {"AssertionError"}
        assert len(find_targets(EdgeKind.failure_signature, iteration)) == 1
    assert find_targets(EdgeKind.has_fix_card, first_attempt) == set()
    assert find_targets(EdgeKind.has_fix_card, second_attempt) == {f"{run}-2"}

    edges = SqlEdges(database)
    (key,) = find_targets(EdgeKind.failure_signature, first_attempt)
    (fix,) = asyncio.run(edges.list_fixes(key))
    assert (fix.card, fix.run, fix.signature, fix.files) == (f"{run}-2", run, key, (play.CODE,))
    assert (fix.state, fix.summary) == ("shown", json.loads(play.CARD)["summary"])
    (bug_type,) = asyncio.run(edges.count_bug_types())
    assert (bug_type.repo, bug_type.type, bug_type.runs) == ("rig", "AssertionError", 1)
    files = {item.path: item for item in asyncio.run(edges.list_files_in_failures())}
    assert (files[play.CODE].attempts, files[play.CODE].runs) == (1, 1), "the successful attempt is not a failure"
    assert asyncio.run(edges.list_files_in_failures(repo="another")) == []
    assert asyncio.run(edges.list_fixes(key, repo="another")) == []


async def test_edges_are_filtered_by_repo_and_sorted_by_time(database: Database) -> None:
    clock = Clock()
    store = SqlStore(database, clock)

    async def run_scenario() -> list[KeptEdge]:
        for run_id, repo in (("run-b", "shop"), ("run-a", "shop"), ("run-c", "bank")):
            clock.time += 60
            new, fence = await begin(store, run_id, spec=make_spec(repo=repo))
            memories = NewMemories(card=make_card(f"card of {run_id}"))
            await store.commit(commit(new, Step.remember, remembered=memories), fence)
        return await SqlEdges(database).list_edges(repo="shop")

    shop_edges = await run_scenario()
    assert [item.target for item in shop_edges if item.kind is EdgeKind.has_fix_card] == [
        "card of run-b",
        "card of run-a",
    ]


def put(database: Database, kind: EdgeKind, target: str, repo: str, attempt: str, created_at: datetime) -> None:
    """Insert an edge of a failed attempt, `RUN/NUMBER`."""
    run, number = attempt.split("/")
    common_fields = {"tenant": database.tenant, "run_id": run, "attempt": int(number), "repo": repo}
    row = {**common_fields, "kind": kind.value, "source": attempt, "target": target, "created": created_at.timestamp()}
    failed = {**common_fields, "id": attempt, "key": "", "family": "", "body": "{}", "created": created_at.timestamp()}
    with database.connect_for_writing() as connection:
        connection.execute(insert(edge_rows), row)
        if connection.execute(failures.select().where(failures.c.id == attempt)).first() is None:
            connection.execute(insert(failures), failed)


async def test_queries_separate_repos_months_and_tenants(database: Database) -> None:
    old, new = datetime(2030, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC)
    changed, retrieved_file, bug_type = EdgeKind.changed_file, EdgeKind.retrieved_file, EdgeKind.bug_type
    for kind, target, repo, attempt, created_at in (
        (changed, "app.py", "shop", "run-1/1", old),
        (retrieved_file, "app.py", "shop", "run-1/1", old),
        (changed, "app.py", "shop", "run-1/2", old),
        (changed, "app.py", "shop", "run-2/1", new),
        (changed, "it's; --.py", "shop", "run-2/1", new),
        (changed, "app.py", "bank", "run-3/1", new),
        (bug_type, "KeyError", "shop", "run-1/1", old),
        (bug_type, "KeyError", "shop", "run-1/2", old),
        (bug_type, "KeyError", "shop", "run-2/1", new),
        (bug_type, "KeyError", "bank", "run-3/1", new),
        (bug_type, "Upset", "bank", "run-3/1", new),
    ):
        put(database, kind, target, repo, attempt, created_at)
    put(database.for_tenant("other"), changed, "app.py", "shop", "run-1/9", old)
    put(database.for_tenant("other"), bug_type, "KeyError", "shop", "run-1/9", old)

    edges = SqlEdges(database)
    files = await edges.list_files_in_failures()
    assert files == [
        FailingFile(repo="shop", path="app.py", attempts=3, runs=2),
        FailingFile(repo="bank", path="app.py", attempts=1, runs=1),
        FailingFile(repo="shop", path="it's; --.py", attempts=1, runs=1),
    ]
    assert await edges.list_files_in_failures(repo="shop", limit=1) == files[:1]
    types = await edges.count_bug_types()
    assert types == [
        TypeInMonth(repo="bank", month="2030-02", type="KeyError", runs=1),
        TypeInMonth(repo="bank", month="2030-02", type="Upset", runs=1),
        TypeInMonth(repo="shop", month="2030-02", type="KeyError", runs=1),
        TypeInMonth(repo="shop", month="2030-01", type="KeyError", runs=1),
    ]
    assert {item.repo for item in await edges.count_bug_types(repo="shop")} == {"shop"}
