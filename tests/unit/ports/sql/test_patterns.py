"""What only patterns in SQL have: vectors, added late and by one model at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from redstart.core.errors import StoreError
from redstart.core.learning import NewMemories, Plan
from redstart.core.run import Mode, Result, Status, Step
from redstart.ports.memory.hashing import DIMENSION, HashingEmbedder, embedded
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.patterns import SqlPatterns
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import commit, pattern, record, spec

SORTER, GAME = pattern().goal, "A snake game for the terminal"


class Turned(HashingEmbedder):
    """Another model, whose vectors are rotated so that they have nothing in common with the first model's."""

    name = "turned-1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.seen += texts
        half = DIMENSION // 2
        return [[*place[half:], *place[:half]] for place in map(embedded, texts)]


async def left(database: Database, goals: Sequence[str], **over: str) -> None:
    store = SqlStore(database, Clock())
    for number, goal in enumerate(goals):
        new, fence = await begin(store, f"run-{goal}")
        made = pattern(f"pattern-{number}", goal=goal, **over)
        await store.commit(commit(new, Step.remember, remembered=NewMemories(pattern=made)), fence)


def places(database: Database) -> dict[str, int]:
    with database.reading() as connection:
        rows = connection.execute(text("SELECT model, count(*) FROM pattern_vectors GROUP BY model"))
        return {row[0]: row[1] for row in rows}


def goals_found(database: Database, embedder: HashingEmbedder | None, goal: str) -> list[str]:
    found = asyncio.run(SqlMemory(database, embedder).patterns(goal, tenant="home", repo="shop"))
    return [item.pattern.goal for item in found]


def test_places_of_two_models_are_never_compared(made: Path | str) -> None:
    with Database.open(made) as database:
        asyncio.run(left(database, [SORTER, GAME]))
        turned = Turned()
        for embedder in (HashingEmbedder(), turned, HashingEmbedder(), turned):
            assert goals_found(database, embedder, SORTER) == [SORTER]
            assert goals_found(database, embedder, GAME) == [GAME]
        assert places(database) == {"hashing-1": 2, "turned-1": 2}
        assert len(turned.seen) == 4 + 4, "four queries, and both goals after each change of models"


def test_without_an_embedder_nothing_is_found(made: Path | str) -> None:
    with Database.open(made) as database:
        asyncio.run(left(database, [SORTER]))
        assert goals_found(database, None, SORTER) == []


def test_what_is_quarantined_is_kept_and_has_no_place(made: Path | str) -> None:
    with Database.open(made) as database:
        asyncio.run(left(database, [SORTER], outcome="refused"))
        assert goals_found(database, HashingEmbedder(), SORTER) == []
        assert places(database) == {}
        with database.reading() as connection:
            assert connection.execute(text("SELECT state FROM patterns")).scalars().all() == ["quarantined"]


PLAN = ("A flamingo for the rows.", ("Teach the flamingo to sort", "Feed the flamingo its options"))


async def ended_with(database: Database, run_id: str, left: NewMemories, given: str = "[]") -> None:
    """Finish a run that was given these patterns, made a plan, and stored these memories."""
    store = SqlStore(database, Clock())
    new, fence = await begin(store, run_id, spec=spec(mode=Mode.create, goal=SORTER))
    call = CallPlace(run_id, 1, "plan", OutsideOrdinal.alike)
    await SqlJournal(database).add(record(call, kind="patterns", result=given), fence)
    planned = Plan(summary=PLAN[0], patterns=("pattern-1",) if given != "[]" else ())
    one = commit(new, Step.plan, artifact=planned.model_dump_json(), now=new.now.model_copy(update={"plan": planned}))
    await store.commit(one, fence)
    two = commit(one.after, Step.remember, artifact=left.model_dump_json(), remembered=left)
    await store.commit(two, fence)
    await store.commit(commit(two.after, Step.decide, status=Status.finished, result=Result.verified), fence)


def everything(database: Database, made: Path | str) -> bytes:
    with database.reading() as connection:
        names = ("runs", "steps", "events", "journal", "patterns", "pattern_vectors")
        rows = [str(list(map(tuple, connection.execute(text(f"SELECT * FROM {name}"))))) for name in names]
    files = [path.read_bytes() for path in made.parent.glob("store.db*")] if isinstance(made, Path) else []
    return b"".join((*(row.encode() for row in rows), *files))


def test_a_pattern_is_forgotten_with_its_plan_wherever_runs_wrote_it_down(made: Path | str) -> None:
    with Database.open(made) as database:
        left = pattern("pattern-1", goal=SORTER, summary=PLAN[0], subtasks=PLAN[1])
        asyncio.run(ended_with(database, "maker", NewMemories(pattern=left)))
        asyncio.run(ended_with(database, "reader", NewMemories(), f'[{{"pattern":{left.model_dump_json()}}}]'))
        assert goals_found(database, HashingEmbedder(), SORTER) == [SORTER]
        assert everything(database, made).count(b"flamingo") > 4
        assert asyncio.run(SqlPatterns(database.of("other")).forget("pattern-1")) is None
        gone = asyncio.run(SqlPatterns(database).forget("pattern-1"))
        assert gone is not None
        assert set(gone.texts) == {PLAN[0], *PLAN[1]}
        assert b"flamingo" not in everything(database, made)
        assert (places(database), goals_found(database, HashingEmbedder(), SORTER)) == ({}, [])
        assert asyncio.run(SqlPatterns(database).forget("pattern-1")) is None
        assert asyncio.run(SqlStore(database, Clock()).load("maker")).spec.goal == SORTER, "the user's own goal"


def test_what_a_run_that_goes_on_was_shown_is_not_forgotten_yet(made: Path | str) -> None:
    with Database.open(made) as database:
        asyncio.run(left(database, [SORTER]))
        with pytest.raises(StoreError, match="has not finished"):
            asyncio.run(SqlPatterns(database).forget("pattern-0"))
        assert goals_found(database, HashingEmbedder(), SORTER) == [SORTER]
