"""What only patterns in SQL have: vectors, added late and by one model at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from redstart.core.errors import StoreError
from redstart.core.learning import NewMemories, Plan
from redstart.core.run import Mode, Result, Status, Step
from redstart.ports.memory.hashing import DIMENSION, HashingEmbedder, embed_text
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.patterns import SqlPatterns
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import commit, make_pattern, make_spec, record

SORTER, GAME = make_pattern().goal, "A snake game for the terminal"


class Turned(HashingEmbedder):
    """Another model, whose vectors are rotated so that they have nothing in common with the first model's."""

    name = "turned-1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.seen += texts
        half = DIMENSION // 2
        return [[*place[half:], *place[:half]] for place in map(embed_text, texts)]


async def store_patterns(database: Database, goals: Sequence[str], **overrides: str) -> None:
    store = SqlStore(database, Clock())
    for number, goal in enumerate(goals):
        new, fence = await begin(store, f"run-{goal}")
        new_pattern = make_pattern(f"pattern-{number}", goal=goal, **overrides)
        await store.commit(commit(new, Step.remember, remembered=NewMemories(pattern=new_pattern)), fence)


def count_vectors(database: Database) -> dict[str, int]:
    with database.connect_for_reading() as connection:
        rows = connection.execute(text("SELECT model, count(*) FROM pattern_vectors GROUP BY model"))
        return {row[0]: row[1] for row in rows}


async def find_goals(database: Database, embedder: HashingEmbedder | None, goal: str) -> list[str]:
    recalled_patterns = await SqlMemory(database, embedder).recall_patterns(goal, tenant="home", repo="shop")
    return [item.pattern.goal for item in recalled_patterns]


async def test_vectors_of_two_models_are_never_compared(made: Path | str) -> None:
    with Database.open(made) as database:
        await store_patterns(database, [SORTER, GAME])
        turned_embedder = Turned()
        for embedder in (HashingEmbedder(), turned_embedder, HashingEmbedder(), turned_embedder):
            assert await find_goals(database, embedder, SORTER) == [SORTER]
            assert await find_goals(database, embedder, GAME) == [GAME]
        assert count_vectors(database) == {"hashing-1": 2, "turned-1": 2}
        assert len(turned_embedder.seen) == 4 + 4, "four queries, and both goals after each change of models"


async def test_nothing_is_found_without_an_embedder(made: Path | str) -> None:
    with Database.open(made) as database:
        await store_patterns(database, [SORTER])
        assert await find_goals(database, None, SORTER) == []


async def test_quarantined_pattern_is_kept_but_not_embedded(made: Path | str) -> None:
    with Database.open(made) as database:
        await store_patterns(database, [SORTER], outcome="refused")
        assert await find_goals(database, HashingEmbedder(), SORTER) == []
        assert count_vectors(database) == {}
        with database.connect_for_reading() as connection:
            assert connection.execute(text("SELECT state FROM patterns")).scalars().all() == ["quarantined"]


PLAN = ("A flamingo for the rows.", ("Teach the flamingo to sort", "Feed the flamingo its options"))


async def finish_run(database: Database, run_id: str, left: NewMemories, recalled_json: str = "[]") -> None:
    """Finish a run that was given these patterns, made a plan, and stored these memories."""
    store = SqlStore(database, Clock())
    new, fence = await begin(store, run_id, spec=make_spec(mode=Mode.create, goal=SORTER))
    call = CallPlace(run_id, 1, "plan", OutsideOrdinal.alike)
    await SqlJournal(database).add(record(call, kind="patterns", result=recalled_json), fence)
    plan = Plan(summary=PLAN[0], patterns=("pattern-1",) if recalled_json != "[]" else ())
    plan_commit = commit(new, Step.plan, artifact=plan.model_dump_json(), now=new.now.model_copy(update={"plan": plan}))
    await store.commit(plan_commit, fence)
    remember_commit = commit(plan_commit.after, Step.remember, artifact=left.model_dump_json(), remembered=left)
    await store.commit(remember_commit, fence)
    await store.commit(
        commit(remember_commit.after, Step.decide, status=Status.finished, result=Result.verified), fence
    )


def dump_database(database: Database, made: Path | str) -> bytes:
    with database.connect_for_reading() as connection:
        names = ("runs", "steps", "events", "journal", "patterns", "pattern_vectors")
        rows = [str(list(map(tuple, connection.execute(text(f"SELECT * FROM {name}"))))) for name in names]
    files = [path.read_bytes() for path in made.parent.glob("store.db*")] if isinstance(made, Path) else []
    return b"".join((*(row.encode() for row in rows), *files))


async def test_forgotten_pattern_and_its_plan_leave_no_trace_in_any_run(made: Path | str) -> None:
    with Database.open(made) as database:
        stored_pattern = make_pattern("pattern-1", goal=SORTER, summary=PLAN[0], subtasks=PLAN[1])
        await finish_run(database, "maker", NewMemories(pattern=stored_pattern))
        await finish_run(database, "reader", NewMemories(), f'[{{"pattern":{stored_pattern.model_dump_json()}}}]')
        assert await find_goals(database, HashingEmbedder(), SORTER) == [SORTER]
        assert dump_database(database, made).count(b"flamingo") > 4
        assert await SqlPatterns(database.for_tenant("other")).forget("pattern-1") is None
        forgotten_texts = await SqlPatterns(database).forget("pattern-1")
        assert forgotten_texts is not None
        assert set(forgotten_texts.texts) == {PLAN[0], *PLAN[1]}
        assert b"flamingo" not in dump_database(database, made)
        assert (count_vectors(database), await find_goals(database, HashingEmbedder(), SORTER)) == ({}, [])
        assert await SqlPatterns(database).forget("pattern-1") is None
        assert (await SqlStore(database, Clock()).load("maker")).spec.goal == SORTER, "the user's own goal"


async def test_pattern_shown_to_an_unfinished_run_is_not_forgotten(made: Path | str) -> None:
    with Database.open(made) as database:
        await store_patterns(database, [SORTER])
        with pytest.raises(StoreError, match="has not finished"):
            await SqlPatterns(database).forget("pattern-0")
        assert await find_goals(database, HashingEmbedder(), SORTER) == [SORTER]
