"""What opening a database is in either kind."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from redstart.core.errors import StoreError
from redstart.ports.sql.schema import HEAD


def brought_up(engine: Engine, migrate: Callable[[Engine], None]) -> Engine:
    """The same engine, its database at the newest revision; closed where that fails. Raises `StoreError`."""
    try:
        with store_errors():
            with engine.begin() as connection:
                current = revision(connection)
            if current != HEAD:
                migrate(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def revision(connection: Connection) -> str | None:
    """The revision at which the database is; None for a new one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


@contextmanager
def store_errors(driver: type[Exception] = SQLAlchemyError) -> Generator[None]:
    """Raises what the database says as a `StoreError`, in a line; also what its `driver` says by itself."""
    try:
        yield
    except (SQLAlchemyError, driver) as error:
        cause = getattr(error, "orig", None) or error
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise StoreError(f"the run store cannot be used: {lines[0]}") from error
