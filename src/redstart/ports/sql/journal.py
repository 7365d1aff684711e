"""The journal in SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from redstart.core.errors import Fenced, StoreError
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import journal, runs
from redstart.ports.store.port import Call, Record

# Made once: putting a statement together costs more than running it.
_HOLD = select(runs.c.fence).where(runs.c.id == bindparam("run_id")).with_for_update()
_LAST = select(func.coalesce(func.max(journal.c.position), -1)).where(journal.c.run_id == bindparam("of_run"))
_ADD = insert(journal).values(position=_LAST.scalar_subquery() + 1)


class SqlJournal:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, call: Call) -> Record | None:
        query = select(journal).where(*_in_step(call), journal.c.ordinal == call.ordinal)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _record(row)

    async def add(self, record: Record, fence: int) -> None:
        call = record.call
        row = {
            **call._asdict(),
            "of_run": call.run_id,
            "kind": record.kind,
            "request_hash": record.request_hash,
            "request": record.request,
            "result": record.result,
            "digest": record.digest,
        }
        with self._database.writing() as connection:
            _hold(connection, call.run_id, fence)
            try:
                connection.execute(_ADD, row)
            except IntegrityError as error:
                raise StoreError(f"{call} of run {call.run_id} is recorded already") from error

    async def discard(self, call: Call, fence: int) -> int:
        with self._database.writing() as connection:
            _hold(connection, call.run_id, fence)
            return connection.execute(
                delete(journal).where(*_in_step(call), journal.c.ordinal >= call.ordinal)
            ).rowcount

    async def records(self, run_id: str) -> list[Record]:
        query = select(journal).where(journal.c.run_id == run_id).order_by(journal.c.attempt, journal.c.position)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [_record(row) for row in rows]


def _hold(connection: Connection, run_id: str, fence: int) -> None:
    """Makes sure that the run is held with `fence`, and stays so until the transaction ends.

    The lock on the row is for databases that let two transactions write at once; SQLite does not, and ignores it.
    """
    if connection.execute(_HOLD, {"run_id": run_id}).scalar() != fence:
        raise Fenced


def _in_step(call: Call) -> list[ColumnElement[bool]]:
    return [journal.c.run_id == call.run_id, journal.c.attempt == call.attempt, journal.c.step == call.step]


def _record(row: Row[*tuple[object, ...]]) -> Record:
    return Record(
        call=Call(row.run_id, row.attempt, row.step, row.ordinal),
        kind=row.kind,
        request_hash=row.request_hash,
        request=row.request,
        result=row.result,
        digest=row.digest,
    )
