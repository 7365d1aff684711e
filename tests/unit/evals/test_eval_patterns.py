"""A run of an evaluation is never shown how its own task was done before."""

from __future__ import annotations

import asyncio

from redstart.evals.runner import Blank, Withheld
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.testing.contracts.patterns import SORTER, reach
from redstart.testing.contracts.store import Clock, Stores
from support.store import MemoryDatabase, MemoryJournal, MemoryMemory, MemoryShelf, MemoryStore


def test_patterns_of_the_same_task_are_withheld_and_without_memory_all_are() -> None:
    database, clock = MemoryDatabase(), Clock()
    memory = MemoryMemory(database, HashingEmbedder())
    store, shelf = MemoryStore(database, clock), MemoryShelf(database)
    stores = Stores(store, MemoryJournal(database), memory, shelf, clock, lambda _: stores)

    async def scenario() -> None:
        for repo in ("task", "other", "third"):
            await reach(stores, f"of-{repo}", repo=repo, provenance={"repo": repo})
        every = await memory.patterns(SORTER, tenant="home", repo="task")
        assert [one.pattern.id for one in every] == ["of-task", "of-third", "of-other"]
        for limit in (1, 2, 3):
            shown = await Withheld(memory).patterns(SORTER, tenant="home", repo="task", limit=limit)
            assert [one.pattern.id for one in shown] == ["of-third", "of-other"][:limit]
        assert await Blank().patterns(SORTER, tenant="home", repo="task") == []

    asyncio.run(scenario())
