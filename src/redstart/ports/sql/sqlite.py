"""SQLite: open and migrate a database file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import URL, Connection, Engine, create_engine, event

from redstart.core.errors import StoreError
from redstart.ports.sql.connect import migrate_database

BUSY_SECONDS = 10.0
"""How long a write waits for that of another process."""
BEGIN_OPTION = "redstart_begin"
"""The execution option that contains the statement that begins a transaction."""


def open_database(path: Path) -> Engine:
    """Open the database at `path`, or create it. Raises `StoreError`; see `Database.open`."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _lock_directory(path.parent):
            return _open_engine(path)
    except OSError as error:
        raise StoreError(
            f"the run store {path} cannot be opened: {error.strerror or error}",
            remedy="Check who owns that directory, or choose another one for redstart's data.",
        ) from error


def _open_engine(path: Path) -> Engine:
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": BUSY_SECONDS})
    return migrate_database(prepare_engine(engine), _migrate)


def prepare_engine(engine: Engine) -> Engine:
    """Make the engine begin transactions as `Database` needs it, and return it."""
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _migrate(engine: Engine) -> None:
    # Importing Alembic takes longer than everything else in opening, and is rarely needed.
    from redstart.ports.sql.migrations import upgrade  # noqa: PLC0415

    with engine.connect() as connection:
        # The mode is stored in the file. It cannot be set inside a transaction, so SQLAlchemy is bypassed.
        driver = connection.connection.driver_connection
        if isinstance(driver, SqliteConnection):
            driver.execute("PRAGMA journal_mode = WAL").close()
    with engine.execution_options(**{BEGIN_OPTION: "BEGIN IMMEDIATE"}).begin() as connection:
        upgrade(connection)


def _on_connect(connection: SqliteConnection, _record: object) -> None:
    # The driver itself would begin transactions too late: `_on_begin` does it.
    connection.isolation_level = None
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(BEGIN_OPTION, "BEGIN"))


@contextmanager
def _lock_directory(folder: Path) -> Generator[None]:
    """Hold a lock on the directory: of several processes that find no database, one creates it and the others wait.

    SQLite's own locks are not enough: switching to WAL fails, without waiting, while another process reads.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
