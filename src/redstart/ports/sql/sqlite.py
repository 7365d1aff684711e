"""SQLite: how its file is opened and brought up to date."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SqliteConnection

from sqlalchemy import URL, Connection, Engine, create_engine, event

from redstart.core.errors import StoreError
from redstart.ports.sql.opening import brought_up

BUSY_SECONDS = 10.0
"""How long a write waits for another process's."""
BEGIN = "redstart_begin"
"""The execution option that says how a transaction begins."""


def opened(path: Path) -> Engine:
    """The database at `path`, made where there is none. Raises `StoreError`; see `Database.open`."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone_in(path.parent):
            return _opened(path)
    except OSError as error:
        raise StoreError(
            f"the run store {path} cannot be opened: {error.strerror or error}",
            remedy="Check who owns that folder, or choose another one for redstart's data.",
        ) from error


def _opened(path: Path) -> Engine:
    engine = create_engine(URL.create("sqlite", database=str(path)), connect_args={"timeout": BUSY_SECONDS})
    return brought_up(prepared(engine), _migrate)


def prepared(engine: Engine) -> Engine:
    """The same engine, which from now on begins transactions as `Database` needs it."""
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _migrate(engine: Engine) -> None:
    # Alembic takes longer to import than all the rest of opening, and is hardly ever needed.
    from redstart.ports.sql.migrations import upgrade  # noqa: PLC0415

    with engine.connect() as connection:
        # Lasts in the file. It cannot be set inside a transaction, hence past SQLAlchemy.
        driver = connection.connection.driver_connection
        if isinstance(driver, SqliteConnection):
            driver.execute("PRAGMA journal_mode = WAL").close()
    with engine.execution_options(**{BEGIN: "BEGIN IMMEDIATE"}).begin() as connection:
        upgrade(connection)


def _on_connect(connection: SqliteConnection, _record: object) -> None:
    # The driver would begin transactions by itself, and too late: `_on_begin` does it.
    connection.isolation_level = None
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(BEGIN, "BEGIN"))


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
