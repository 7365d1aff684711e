"""What belongs together, as a real run leaves it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.learning import Edge, EdgeKind, Remembered
from redstart.core.run import Result, RunState, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlShelf
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing import rig as play
from redstart.testing.contracts.store import begin
from redstart.testing.rig import Kept, make_rig
from redstart.testing.states import card, commit, spec
from redstart.testing.store import Clock


@pytest.fixture
def database(made: Path | str) -> Iterator[Database]:
    with Database.open(made) as database:
        yield database


def two_attempts(database: Database, folder: Path) -> RunState:
    memory = SqlMemory(database, HashingEmbedder())
    kept = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlShelf(database))
    rig = make_rig(folder, lambda: kept)
    rig.with_model([play.WRONG, play.RIGHT, play.CARD])

    async def go() -> RunState:
        run_id = await rig.begin()
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    try:
        return asyncio.run(go())
    finally:
        rig.trees.close()


def test_a_run_leaves_what_belongs_to_each_of_its_attempts(database: Database, tmp_path: Path) -> None:
    ended = two_attempts(database, tmp_path / "snapshots")
    assert ended.result is Result.verified
    run, one, two = ended.run_id, f"{ended.run_id}/1", f"{ended.run_id}/2"
    found = asyncio.run(SqlEdges(database).edges())
    assert len(set(found)) == len(found)

    def targets(kind: EdgeKind, source: str) -> set[str]:
        return {edge.target for edge in found if (edge.kind, edge.source) == (kind, source)}

    assert targets(EdgeKind.iteration, run) == {one, two}
    # An attempt that stayed red and has others after it is remembered too; what was done before is kept for the next.
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
    assert asyncio.run(edges.fixes_of(key)) == [f"{run}-2"]
    assert asyncio.run(edges.bug_types()) == [("AssertionError", 1)]
    assert dict(asyncio.run(edges.files_in_failures()))[play.CODE] == 1, "the attempt that was green is no failure"
    assert asyncio.run(edges.files_in_failures(repo="another")) == []


def test_edges_are_of_a_repo_and_in_the_order_of_time(database: Database) -> None:
    clock = Clock()
    store = SqlStore(database, clock)

    async def scenario() -> list[Edge]:
        for run_id, repo in (("run-b", "shop"), ("run-a", "shop"), ("run-c", "bank")):
            clock.time += 60
            new, fence = await begin(store, run_id, spec=spec(repo=repo))
            left = Remembered(card=card(f"card of {run_id}"))
            await store.commit(commit(new, Step.remember, remembered=left), fence)
        return await SqlEdges(database).edges(repo="shop")

    found = asyncio.run(scenario())
    assert [one.target for one in found if one.kind is EdgeKind.has_fix_card] == ["card of run-b", "card of run-a"]
