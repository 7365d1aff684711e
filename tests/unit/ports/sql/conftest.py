"""Databases of earlier versions, and locations for SQLite and Postgres."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Connection, Engine, MetaData, create_engine, insert, inspect, select, text
from sqlalchemy.dialects.postgresql.base import ischema_names

from redstart.app.servers.postgres import Postgres
from redstart.ports.sql.engine import Database
from redstart.ports.sql.migrations import create_config
from redstart.ports.sql.schema import VectorColumn, metadata
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import DAWN, Clock
from redstart.testing.states import make_state

Where = Path | str
ischema_names["vector"] = VectorColumn  # so that tables reflected from a server use it


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """Return the location of a database that does not exist yet or is empty."""
    if request.param == "sqlite":
        return tmp_path / "store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()


@pytest.fixture(params=["sqlite", "postgres"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """Return the location of an up-to-date database without rows, or of one that opening creates."""
    if request.param == "sqlite":
        return tmp_path / "store.db"
    make: Callable[[], str] = request.getfixturevalue("new_postgres")
    return make()


@contextmanager
def connect_without_schema(where: Where) -> Iterator[Engine]:
    """Connect to the database without our schema."""
    url = f"sqlite:///{where}" if isinstance(where, Path) else where.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url)
    yield engine
    engine.dispose()


def create_database_at(revision: str, where: Where, source: Database) -> None:
    """Create a database of that revision, with the data of `source` for which it has tables and columns."""
    if isinstance(where, Path):
        with sqlite3.connect(where) as file_connection:
            file_connection.execute("PRAGMA journal_mode = WAL")
        file_connection.close()
    with (
        connect_without_schema(where) as engine,
        engine.begin() as connection,
        source.connect_for_reading() as source_connection,
    ):
        setup = create_config()
        setup.attributes["connection"] = connection
        command.upgrade(setup, revision)
        see_home(connection)
        _copy(source_connection, connection)


def see_home(connection: Connection) -> None:
    """Set the default tenant on the connection: since 0004 Postgres shows each tenant only its own rows."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT set_config('redstart.tenant', 'home', false)"))


def _copy(source: Connection, target: Connection) -> None:
    old = MetaData()
    old.reflect(target)
    for table in metadata.sorted_tables:
        if table.name in old.tables:
            columns = [table.c[column.name] for column in old.tables[table.name].c]
            rows = [row._asdict() for row in source.execute(select(*columns))]
            if rows:
                target.execute(insert(old.tables[table.name]), rows)


@pytest.fixture
def left() -> Callable[[str, Where, Database], None]:
    return create_database_at


@pytest.fixture
def of_before(tmp_path: Path) -> Callable[[str, str], Path]:
    """Create a database of that revision, which lacks that table, with one run in it; return its path."""

    def make(revision: str, missing_table: str) -> Path:
        path = tmp_path / "store.db"
        with Database.open(tmp_path / "now.db") as database:
            asyncio.run(SqlStore(database, Clock()).create(make_state(), folder="/home/shop", created=DAWN))
            create_database_at(revision, path, database)
        with connect_without_schema(path) as engine, engine.connect() as connection:
            assert not inspect(connection).has_table(missing_table)
            assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 1
        return path

    return make
