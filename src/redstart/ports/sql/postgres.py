"""Postgres: connect to a server and migrate its database."""

from __future__ import annotations

import select
from typing import Protocol

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, InvalidatePoolError

from redstart.core.errors import ConfigError
from redstart.ports.sql.connect import migrate_database, read_revision, store_errors

DIALECT = "postgresql"
AT_ONCE = 30
"""The maximum number of connections per process; ten of them stay open."""
_POOL_SIZE = 10
_KEEPALIVE_OPTIONS = {
    # A server that silently disappears is noticed within half a minute, even during a statement.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_MIGRATES = 0x7265_6473
"""The number of the advisory lock: one process migrates while the others wait."""


class _Wire(Protocol):
    @property
    def socket(self) -> int: ...


class _Driver(Protocol):
    @property
    def pgconn(self) -> _Wire: ...


def open_database(url: str) -> Engine:
    """Open and migrate the database at that address. Raises `StoreError` and `ConfigError`; see `Database.open`."""
    engine = _create_engine(url)
    event.listen(engine, "checkout", _on_checkout)
    return migrate_database(engine, _migrate)


def read_revision_at(url: str, seconds: int = 10) -> str | None:
    """Read the revision of the database at that address without changing it. Raises as `opened` does.

    `seconds` is the timeout for the connection.
    """
    engine = _create_engine(url, seconds)
    try:
        with store_errors(), engine.connect() as connection:
            return read_revision(connection)
    finally:
        engine.dispose()


def _create_engine(url: str, seconds: int = 10) -> Engine:
    try:
        address = make_url(url)
        if address.drivername != DIALECT:
            raise ArgumentError
        return create_engine(
            address.set(drivername=f"{DIALECT}+psycopg"),
            pool_size=_POOL_SIZE,
            max_overflow=AT_ONCE - _POOL_SIZE,
            connect_args={**_KEEPALIVE_OPTIONS, "connect_timeout": seconds, "application_name": "redstart"},
        )
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            "the address of the run store is invalid",
            remedy="Write it as postgresql://user:password@host:5432/database",
        ) from error
    except ModuleNotFoundError as error:
        raise ConfigError(
            "a run store on a server needs one more package", remedy="Install it: pip install 'redstart[fleet]'"
        ) from error


def _migrate(engine: Engine) -> None:
    from redstart.ports.sql.migrations import upgrade  # noqa: PLC0415  (see `sqlite`)

    with engine.begin() as connection:
        _lock_migrations(connection)
        upgrade(connection)


def _lock_migrations(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATES})


def _on_checkout(connection: _Driver, _record: object, _proxy: object) -> None:
    """Check whether the server is still there, without sending anything: a server that stops says so, or hangs up.

    Either makes the connection readable, while an idle connection has nothing to read.
    """
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    if poll.poll(0):
        raise InvalidatePoolError("the server hung up")
