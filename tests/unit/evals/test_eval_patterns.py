"""A run of an evaluation is never shown an earlier plan of its own task."""

from __future__ import annotations

import asyncio

from redstart.evals.runner import EmptyMemory, WithholdingMemory
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.patterns import SORTER, reach
from redstart.testing.contracts.store import Clock, Stores
from support.store import memory_database


def test_patterns_of_the_same_task_are_withheld_and_without_memory_all_are() -> None:
    database, clock = memory_database(), Clock()
    memory = SqlMemory(database, HashingEmbedder())
    store, shelf = SqlStore(database, clock), SqlLessonStore(database)
    stores = Stores(store, SqlJournal(database), memory, shelf, clock, lambda _: stores)

    async def scenario() -> None:
        for repo in ("task", "other", "third"):
            await reach(stores, f"of-{repo}", repo=repo, provenance={"repo": repo})
        every = await memory.patterns(SORTER, tenant="home", repo="task")
        assert [item.pattern.id for item in every] == ["of-task", "of-third", "of-other"]
        for limit in (1, 2, 3):
            shown = await WithholdingMemory(memory).patterns(SORTER, tenant="home", repo="task", limit=limit)
            assert [item.pattern.id for item in shown] == ["of-third", "of-other"][:limit]
        assert await EmptyMemory().patterns(SORTER, tenant="home", repo="task") == []

    asyncio.run(scenario())
