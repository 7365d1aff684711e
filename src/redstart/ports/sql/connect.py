"""Open a database: steps that SQLite and Postgres share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from redstart.core.errors import StoreError
from redstart.ports.sql.schema import HEAD


def migrate_database(engine: Engine, migrate: Callable[[Engine], None]) -> Engine:
    """Migrate the database to the newest revision and return the engine. Closes it on failure. Raises `StoreError`."""
    try:
        with store_errors():
            with engine.begin() as connection:
                current = read_revision(connection)
            if current != HEAD:
                migrate(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def read_revision(connection: Connection) -> str | None:
    """Return the revision of the database, or None for a new one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@contextmanager
def store_errors(driver: type[Exception] = SQLAlchemyError) -> Generator[None]:
    """Convert errors of the database, and those of its `driver`, to a `StoreError` with a one-line message."""
    try:
        yield
    except (SQLAlchemyError, driver) as error:
        cause = getattr(error, "orig", None) or error
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise StoreError(f"the run store cannot be used: {lines[0]}") from error
