from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.memory import MemoryContract
from redstart.testing.contracts.store import Stores
from redstart.testing.store import Clock, MemoryDatabase, MemoryJournal, MemoryMemory, MemoryStore


class TestMemoryMemory(MemoryContract):
    @pytest.fixture
    def stores(self) -> Stores:
        database, clock = MemoryDatabase(), Clock()
        return Stores(MemoryStore(database, clock), MemoryJournal(database), MemoryMemory(database), clock)


class TestSqlMemory(MemoryContract):
    @pytest.fixture
    def stores(self, tmp_path: Path) -> Iterator[Stores]:
        clock = Clock()
        with Database.open(tmp_path / "store.db") as database:
            yield Stores(SqlStore(database, clock), SqlJournal(database), SqlMemory(database), clock)
