"""The journal in SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from redstart.core.errors import Fenced, StoreError
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import journal, runs
from redstart.ports.store.port.journal import CallPlace, JournalRecord

# Built once: building a statement costs more than executing it.
_LAST = select(func.coalesce(func.max(journal.c.position), -1)).where(
    journal.c.tenant == bindparam("tenant"), journal.c.run_id == bindparam("run_id")
)
_HELD_RUN = (
    runs.c.tenant == bindparam("tenant"),
    runs.c.id == bindparam("run_id"),
    runs.c.fence == bindparam("fence"),
)
_RECORD_COLUMNS = [column for column in journal.c if column.name != "position"]
# The run's row is locked, so that nobody takes the run over before the record is stored. This matters in databases that
# let two transactions write at once. SQLite does not, and has no such lock.
_ADD = (
    insert(journal)
    .from_select(
        [*_RECORD_COLUMNS, journal.c.position],
        select(*(bindparam(column.name, type_=column.type) for column in _RECORD_COLUMNS), _LAST.scalar_subquery() + 1)
        .select_from(runs)
        .where(*_HELD_RUN)
        .with_for_update(key_share=True, of=runs),
    )
    .returning(journal.c.position)
)
_HOLD = select(runs.c.fence).where(*_HELD_RUN).with_for_update(key_share=True)


class SqlJournal:
    """The journal records of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_step(self, call: CallPlace) -> list[JournalRecord]:
        query = select(journal).where(*self._in_step(call)).order_by(journal.c.ordinal)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [parse_record(row) for row in rows]

    async def add(self, record: JournalRecord, fence: int) -> None:
        call = record.call
        call_columns = {**call._asdict(), "tenant": self._database.tenant, "fence": fence}
        row = {**call_columns, **{name: value for name, value in record._asdict().items() if name != "call"}}
        with self._database.connect_for_statement() as connection:
            try:
                position = connection.execute(_ADD, row).scalar()
            except IntegrityError as error:
                raise StoreError(f"{call} of run {call.run_id} is recorded already") from error
        if position is None:
            raise Fenced

    async def discard(self, call: CallPlace, fence: int) -> int:
        key = {"tenant": self._database.tenant, "run_id": call.run_id, "fence": fence}
        with self._database.connect_for_writing() as connection:
            if connection.execute(_HOLD, key).first() is None:
                raise Fenced
            return connection.execute(
                delete(journal).where(*self._in_step(call), journal.c.ordinal >= call.ordinal)
            ).rowcount

    async def list_records(self, run_id: str) -> list[JournalRecord]:
        conditions = (journal.c.tenant == self._database.tenant, journal.c.run_id == run_id)
        query = select(journal).where(*conditions).order_by(journal.c.attempt, journal.c.position)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [parse_record(row) for row in rows]

    def _in_step(self, call: CallPlace) -> list[ColumnElement[bool]]:
        return [
            journal.c.tenant == self._database.tenant,
            journal.c.run_id == call.run_id,
            journal.c.attempt == call.attempt,
            journal.c.step == call.step,
        ]


def parse_record(row: Row[Any]) -> JournalRecord:
    call = CallPlace(row.run_id, row.attempt, row.step, row.ordinal)
    return JournalRecord(call, *(getattr(row, name) for name in JournalRecord._fields if name != "call"))
