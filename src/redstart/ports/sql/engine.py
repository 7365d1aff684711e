"""The database as the adapters use it: visible rows by tenant, and kinds of transactions."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

from pydantic import ValidationError
from sqlalchemy import Connection, Engine, text

from redstart.core.errors import StoreError
from redstart.core.formats import read
from redstart.core.frozen import FrozenValue
from redstart.ports.sql import postgres, sqlite
from redstart.ports.sql.connect import store_errors
from redstart.ports.sql.schema import DEFAULT_TENANT

N = TypeVar("N", bound=FrozenValue)

_TENANT = "redstart.tenant"
_SEE = text("SELECT set_config('redstart.tenant', :tenant, false)")
_SEE_BY_DRIVER = "SELECT set_config('redstart.tenant', %(tenant)s, false)"


class ResultRows(Protocol):
    def fetchall(self) -> Sequence[Sequence[Any]]: ...


class SqlDriver(Protocol):
    """The common interface of both databases' drivers. Statements are in the dialect of each."""

    def execute(self, statement: str, bound: Mapping[str, Any] = ..., /) -> ResultRows: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class _ServerDriver(SqlDriver, Protocol):
    """The driver of Postgres."""

    autocommit: bool

    @property
    def closed(self) -> bool: ...


class Database:
    """One open database, as one tenant sees it. Do not carry it over a fork: open it in the process that uses it.

    After a server restart, dead connections are detected before anything is sent over them, and replaced. While the
    server is down, or if it goes down during a statement, a `StoreError` is raised; the next call tries again.
    """

    def __init__(self, engine: Engine, tenant: str = DEFAULT_TENANT) -> None:
        self.engine = engine
        self.tenant = tenant
        self.is_postgres = engine.dialect.name == postgres.DIALECT
        self._reader = engine
        if self.is_postgres:
            # A single statement is a transaction there, and needs no further round trip.
            self._reader = self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
            self._writer = engine
        else:
            # A transaction that will write declares it at the start: one that first reads and then requests the write
            # lock is refused immediately, without waiting, if another process wrote in between.
            self._single = self._writer = engine.execution_options(**{sqlite.BEGIN_OPTION: "BEGIN IMMEDIATE"})

    @classmethod
    def open(cls, location: Path | str) -> Database:
        """Open the database at `location`, the path of a SQLite file or a `postgresql://` address, and migrate it if
        old.

        A missing file is created with its directory; a server's database must exist. Raises `StoreError` if it cannot
        be read or written, or was written by a newer Redstart, and `ConfigError` for an invalid address.
        """
        return cls(sqlite.open_database(location) if isinstance(location, Path) else postgres.open_database(location))

    def for_tenant(self, tenant: str) -> Database:
        """Return the same database as this tenant sees it. They share connections: closing either closes both."""
        return Database(self.engine, tenant)

    @contextmanager
    def connect_for_reading(self) -> Generator[Connection]:
        """Open a connection for reading. In SQLite all statements share one snapshot; in Postgres each has its own."""
        with store_errors(), self._reader.connect() as connection, self._begin(connection):
            yield connection

    @contextmanager
    def connect_for_snapshot(self) -> Generator[Connection]:
        """Open a connection for reading whose statements all share one snapshot."""
        level = {"isolation_level": "REPEATABLE READ"} if self.is_postgres else {}
        with (
            store_errors(),
            self.engine.execution_options(**level).connect() as connection,
            self._begin(connection),
        ):
            yield connection

    @contextmanager
    def connect_for_statement(self) -> Generator[Connection]:
        """Open a connection for a single, atomic, writing statement. In Postgres it takes one round trip."""
        with store_errors(), self._single.connect() as connection, self._begin(connection):
            yield connection

    @contextmanager
    def connect_for_writing(self) -> Generator[Connection]:
        """Open a transaction that is committed at the end, and rolled back by any exception."""
        with store_errors(), self._writer.connect() as connection, self._begin(connection):
            yield connection

    @contextmanager
    def open_driver(self) -> Generator[SqlDriver]:
        """Open the driver itself for what every step writes: SQLAlchemy takes longer per statement than SQLite.

        In SQLite it is a transaction, as in `writing`; in Postgres each statement is one, as in `single`.
        """
        with store_errors(self.engine.dialect.loaded_dbapi.Error):
            connection = self.engine.raw_connection()
            try:
                if self.is_postgres:
                    with self._use_autocommit(
                        cast(_ServerDriver, connection.driver_connection), connection.info
                    ) as server:
                        yield server
                else:
                    with _use_transaction(cast(SqlDriver, connection.driver_connection)) as driver:
                        yield driver
            finally:
                connection.close()

    @contextmanager
    def _use_autocommit(self, driver: _ServerDriver, info: dict[Any, Any]) -> Generator[SqlDriver]:
        driver.autocommit = True
        try:
            if info.get(_TENANT) != self.tenant:
                driver.execute(_SEE_BY_DRIVER, {"tenant": self.tenant})
                info[_TENANT] = self.tenant
            yield driver
        finally:
            if not driver.closed:
                driver.autocommit = False

    @contextmanager
    def _begin(self, connection: Connection) -> Generator[None]:
        # The tenant of a connection is set only when it changes, because that takes a round trip.
        if self.is_postgres and connection.info.get(_TENANT) != self.tenant:
            connection.execute(_SEE, {"tenant": self.tenant})
            connection.commit()
            connection.info[_TENANT] = self.tenant
        with connection.begin():
            yield

    def close(self) -> None:
        """Close every connection. May be called twice."""
        self.engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _use_transaction(driver: SqlDriver) -> Generator[SqlDriver]:
    driver.execute("BEGIN IMMEDIATE")
    try:
        yield driver
    except BaseException:
        driver.rollback()
        raise
    driver.commit()


def parse(noun: type[N], body: str) -> N:
    """Parse a stored value as the current version of its type. Raises `StoreError` if it cannot be read."""
    try:
        return read(noun, body)
    except ValidationError as error:
        raise StoreError(
            f"a {noun.__name__} in the run store cannot be read: {error.error_count()} fields are not as expected",
            remedy="Another version of redstart wrote it; use that version for this run.",
        ) from error
