"""Forgetting for good: words taken out of all that runs wrote down, and out of what the database still keeps of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sqlite3 import Connection as SqliteConnection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, or_, select, text, update

from redstart.core.errors import StoreError
from redstart.core.run import Status
from redstart.core.standing import Control
from redstart.ports.memory.port import Forgotten
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import record_of
from redstart.ports.sql.prune import BLOB_NAME
from redstart.ports.sql.schema import (
    blobs,
    cards,
    edges,
    events,
    failures,
    journal,
    lessons,
    pattern_vectors,
    patterns,
    runs,
    steps,
    uses,
    vectors,
)
from redstart.ports.sql.scrub import Scrub
from redstart.ports.store.port.journal import digest

_WRITTEN: tuple[tuple[Table, ColumnElement[str], tuple[str, ...], tuple[str, ...]], ...] = (
    (runs, runs.c.id, ("id",), ("state", "first_state")),
    (steps, steps.c.run_id, ("run_id", "version"), ("artifact", "state")),
    (events, events.c.run_id, ("run_id", "seq"), ("body",)),
    (journal, journal.c.run_id, ("run_id", "attempt", "step", "ordinal"), ("request", "result")),
    (patterns, patterns.c.run_id, ("id",), ("body",)),
    (failures, failures.c.run_id, ("id",), ("body",)),
)
"""Where runs write: the table, the column of the run, the row's key after the tenant, and the texts."""
_FINISHED = (Status.finished.value, "ended")
"""The words of this version and of earlier ones."""
_SWEPT = (
    *(cards, vectors, edges, failures, lessons, uses, patterns, pattern_vectors),
    *(runs, steps, events, journal, blobs),
)


class Scrubbed:
    """The runs of a tenant, inside of a transaction, without what is forgotten."""

    def __init__(self, connection: Connection, tenant: str, scrub: Scrub) -> None:
        self._connection, self._tenant, self._scrub = connection, tenant, scrub
        self._named: set[str] = set()

    @property
    def forgotten(self) -> Forgotten:
        """As far as runs were looked through."""
        return Forgotten(self._scrub.texts, frozenset(self._named))

    def look(self, kind: str, ids: Sequence[str], made_by: Iterable[str]) -> list[str]:
        """The runs that made one of these, those that were given one by a call of this kind, and those that go on from
        one of these; what blobs they name is put down.

        Raises `StoreError` where one of them has not ended: it would write the words again.
        """
        asked = (journal.c.tenant == self._tenant, journal.c.kind == kind)
        given = or_(*(journal.c.result.contains(one, autoescape=True) for one in ids))
        found = {*made_by, *self._connection.execute(select(journal.c.run_id).where(*asked, given)).scalars()}
        while True:
            later = select(runs.c.id).where(runs.c.tenant == self._tenant, runs.c.parent.in_(found))
            if not (more := set(self._connection.execute(later).scalars()) - found):
                break
            found |= more
        known = sorted(found)
        mine = (runs.c.tenant == self._tenant, runs.c.id.in_(known), runs.c.status.not_in(_FINISHED))
        open_runs = select(runs.c.id).where(*mine, runs.c.control != Control.cancel.value)
        if busy := self._connection.execute(open_runs).scalars().all():
            raise StoreError(
                f"run {busy[0]} was shown {ids[0]} and has not finished",
                remedy=f"finish it with: redstart resume {busy[0]}, or end it: redstart runs cancel {busy[0]}",
            )
        for table, of_run, _, texts in _WRITTEN:
            written = select(*(table.c[one] for one in texts)).where(table.c.tenant == self._tenant, of_run.in_(known))
            for row in self._connection.execute(written):
                self._named.update(name for text in row for name in BLOB_NAME.findall(text))
        return known

    def out_of_runs(self, run_ids: Sequence[str]) -> None:
        for table, of_run, key, texts in _WRITTEN:
            mine = (table.c.tenant == self._tenant, of_run.in_(run_ids))
            for row in self._connection.execute(select(table).where(*mine)).all():
                changed = {one: clean for one in texts if (clean := self._scrub(old := getattr(row, one))) != old}
                if changed:
                    same = [table.c.tenant == self._tenant, *(table.c[one] == getattr(row, one) for one in key)]
                    self._connection.execute(update(table).where(*same).values(**_sealed(table, row, changed)))
        for name in sorted(self._named):
            self._drop_blob(name)

    def _drop_blob(self, name: str) -> None:
        mine = (blobs.c.tenant == self._tenant, blobs.c.name == name)
        data = self._connection.execute(select(blobs.c.data).where(*mine)).scalar()
        if data is not None and self._scrub.traces.are_in(bytes(data)):
            self._connection.execute(delete(blobs).where(*mine))


def _sealed(table: Table, row: Row[Any], changed: dict[str, str]) -> dict[str, str]:
    """With the digest that a changed record of the journal has."""
    if table is not journal:
        return changed
    record = record_of(row)._replace(digest="", **changed)
    return {**changed, "digest": digest(record)}


def sweep(database: Database) -> None:
    """Has the database let go of what was deleted: SQLite writes its file anew, and empties the log beside it."""
    if database.is_postgres:
        with database.single() as connection:
            connection.execute(text(f"VACUUM {', '.join(table.name for table in _SWEPT)}"))
        return
    with database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        if not isinstance(driver, SqliteConnection):
            return
        driver.execute("VACUUM").close()
        busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise StoreError(
            "what was forgotten may still be in the log of the run store: another process is reading it",
            remedy="End what else works with it, and do the same again.",
        )
