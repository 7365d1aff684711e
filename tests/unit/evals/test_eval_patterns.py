"""A run of an evaluation is never shown an earlier plan of its own task."""

from __future__ import annotations

from redstart.evals.runner import EmptyMemory, WithholdingMemory
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.patterns import SORTER, reach
from redstart.testing.contracts.store import Clock, Stores
from support.store import create_memory_database


async def test_patterns_of_the_same_task_are_withheld() -> None:
    database, clock = create_memory_database(), Clock()
    memory = SqlMemory(database, HashingEmbedder())
    store, lesson_store = SqlStore(database, clock), SqlLessonStore(database)
    stores = Stores(store, SqlJournal(database), memory, lesson_store, clock, lambda _: stores)

    async def run_scenario() -> None:
        for repo in ("task", "other", "third"):
            await reach(stores, f"of-{repo}", repo=repo, provenance={"repo": repo})
        all_patterns = await memory.recall_patterns(SORTER, tenant="home", repo="task")
        assert [item.pattern.id for item in all_patterns] == ["of-task", "of-third", "of-other"]
        for limit in (1, 2, 3):
            shown_patterns = await WithholdingMemory(memory).recall_patterns(
                SORTER, tenant="home", repo="task", limit=limit
            )
            assert [item.pattern.id for item in shown_patterns] == ["of-third", "of-other"][:limit]
        assert await EmptyMemory().recall_patterns(SORTER, tenant="home", repo="task") == []

    await run_scenario()
