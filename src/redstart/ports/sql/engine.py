"""How a database is opened, brought up to date and closed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection
from types import TracebackType
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from redstart.core.errors import StoreError
from redstart.core.noun import Noun
from redstart.ports.sql.schema import HEAD

BUSY_SECONDS = 10.0
"""How long a write waits for another process's."""

N = TypeVar("N", bound=Noun)

_BEGIN = "redstart_begin"


class Database:
    """One open database. Not to be carried over a fork: open it in the process that uses it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # A transaction that will write says so at its start: one that read first and then asks for the write lock
        # is refused at once, without waiting, when another process wrote in between.
        self._writer = engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})

    @classmethod
    def open(cls, path: Path) -> Database:
        """The SQLite database at `path`, made (with its folder) where there is none, and migrated if it is old.

        Raises `StoreError` if it cannot be read or written, or was written by a newer redstart.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone_in(path.parent):
                return cls._open(path)
        except OSError as error:
            raise StoreError(
                f"the run store {path} cannot be opened: {error.strerror or error}",
                remedy="Check who owns that folder, or choose another one for redstart's data.",
            ) from error

    @classmethod
    def _open(cls, path: Path) -> Database:
        database = cls(_sqlite(path))
        try:
            with database.reading() as connection:
                current = _revision(connection)
            if current != HEAD:
                database._migrate()
        except BaseException:
            database.close()
            raise
        return database

    def _migrate(self) -> None:
        # Alembic takes longer to import than all the rest of opening, and is hardly ever needed.
        from redstart.ports.sql.migrations import upgrade  # noqa: PLC0415

        with _store_errors(), self.engine.connect() as connection:
            # Lasts in the file. It cannot be set inside a transaction, hence past SQLAlchemy.
            driver = connection.connection.driver_connection
            if isinstance(driver, SqliteConnection):
                driver.execute("PRAGMA journal_mode = WAL").close()
        with self.writing() as connection:
            upgrade(connection)

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """A transaction that sees one moment of the database."""
        with _store_errors(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """A transaction that is committed at the end, and rolled back by any exception."""
        with _store_errors(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Closes every connection. May be called twice."""
        self.engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parse(noun: type[N], body: str) -> N:
    """What was kept, as the noun it was. Raises `StoreError` if the nouns have changed since."""
    try:
        return noun.model_validate_json(body)
    except ValidationError as error:
        raise StoreError(
            f"a {noun.__name__} in the run store cannot be read: {error.error_count()} fields are not as expected",
            remedy="It was kept by another version of redstart; use that version for this run.",
        ) from error


def _sqlite(path: Path) -> Engine:
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: SqliteConnection, _record: object) -> None:
    # The driver would begin transactions by itself, and too late: `_on_begin` does it.
    connection.isolation_level = None
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@contextmanager
def _alone_in(folder: Path) -> Generator[None]:
    """Holds a lock on the folder: of several processes that find no database, one makes it and the others wait.

    SQLite's own locks do not do: the switch to WAL fails, without waiting, while another process so much as reads.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _store_errors() -> Generator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise StoreError(f"the run store cannot be used: {str(cause).splitlines()[0]}") from error
