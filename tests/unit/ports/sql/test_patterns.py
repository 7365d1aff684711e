"""What only patterns in SQL have: places, given late and by one model at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import text

from redstart.core.learning import Remembered
from redstart.core.run import Step
from redstart.ports.memory.hashing import DIMENSION, HashingEmbedder, embedded
from redstart.ports.sql.engine import Database
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import begin
from redstart.testing.states import commit, pattern
from redstart.testing.store import Clock

SORTER, GAME = pattern().goal, "A snake game for the terminal"


class Turned(HashingEmbedder):
    """Another model: all that it says lies elsewhere, so that its places and the other's have nothing in common."""

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
        await store.commit(commit(new, Step.remember, remembered=Remembered(pattern=made)), fence)


def places(database: Database) -> dict[str, int]:
    with database.reading() as connection:
        rows = connection.execute(text("SELECT model, count(*) FROM pattern_vectors GROUP BY model"))
        return {row[0]: row[1] for row in rows}


def goals_found(database: Database, embedder: HashingEmbedder | None, goal: str) -> list[str]:
    found = asyncio.run(SqlMemory(database, embedder).patterns(goal, tenant="home", repo="shop"))
    return [one.pattern.goal for one in found]


def test_places_of_two_models_are_never_compared(made: Path | str) -> None:
    with Database.open(made) as database:
        asyncio.run(left(database, [SORTER, GAME]))
        turned = Turned()
        for embedder in (HashingEmbedder(), turned, HashingEmbedder(), turned):
            assert goals_found(database, embedder, SORTER) == [SORTER]
            assert goals_found(database, embedder, GAME) == [GAME]
        assert places(database) == {"hashing-1": 2, "turned-1": 2}
        assert len(turned.seen) == 4 + 4, "what it placed, once for each time that another one was asked"


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
