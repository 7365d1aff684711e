"""Databases as earlier versions left them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from redstart.ports.sql.engine import Database
from redstart.ports.sql.migrations import config
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import DAWN
from redstart.testing.states import state
from redstart.testing.store import Clock


@pytest.fixture
def of_before(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a database of that revision, which lacks that table, with one run in it; gives its path."""

    def make(revision: str, lacking: str) -> Path:
        path = tmp_path / "store.db"
        with Database.open(path) as database:
            asyncio.run(SqlStore(database, Clock()).create(state(), folder="/home/shop", created=DAWN))
            with database.writing() as connection:
                setup = config()
                setup.attributes["connection"] = connection
                command.downgrade(setup, revision)
                there = text("SELECT count(*) FROM sqlite_master WHERE name = :name")
                assert connection.execute(there, {"name": lacking}).scalar() == 0
        return path

    return make
