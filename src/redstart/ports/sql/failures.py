"""Attempts that failed, recalled by what they failed at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, or_, select

from redstart.core.failures import FailureQuery, RecalledFailure, choose_failures
from redstart.core.learning import FailureRecord
from redstart.ports.memory.port import Forgotten, KeptFailure
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import Scrubbed, sweep
from redstart.ports.sql.schema import failures
from redstart.ports.sql.scrub import Scrub

LOOKED_AT = 200
"""Of those that may fit, the newest that are looked at."""
KIND = "failures"
"""Of the calls by which runs are given them."""


class SqlFailures:
    """Of its database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def of(self, query: FailureQuery, *, repo: str, limit: int) -> list[RecalledFailure]:
        """See `Memory.failures`."""
        if not query.signatures or limit < 1:
            return []
        keys = [one.key for one in query.signatures]
        families = [one.family for one in query.signatures]
        fits = or_(failures.c.key.in_(keys), failures.c.family.in_(families) & (failures.c.repo == repo))
        kept = self._newest(fits, failures.c.run_id.not_in(query.without), limit=LOOKED_AT)
        return choose_failures([(one.record, one.repo) for one in kept], query, repo=repo, limit=limit)

    async def newest(self, limit: int) -> list[KeptFailure]:
        """The newest first."""
        return self._newest(limit=limit)

    async def told(self, failure_id: str) -> Forgotten | None:
        """What `forget` would give, with nothing removed."""
        with self._database.steady() as connection:
            row = connection.execute(select(failures).where(*self._mine(failure_id))).one_or_none()
            if row is None:
                return None
            scrubbed = Scrubbed(connection, self._tenant, _scrub(parse(FailureRecord, row.body)))
            scrubbed.look(KIND, [failure_id], [row.run_id])
        return scrubbed.forgotten

    async def forget(self, failure_id: str) -> Forgotten | None:
        """Removes it, and its words from what runs wrote down; see `Cards.forget`."""
        gone: Forgotten | None = None
        with self._database.writing() as connection:
            row = connection.execute(select(failures).where(*self._mine(failure_id))).one_or_none()
            if row is not None:
                scrubbed = Scrubbed(connection, self._tenant, _scrub(parse(FailureRecord, row.body)))
                scrubbed.out_of_runs(scrubbed.look(KIND, [failure_id], [row.run_id]))
                connection.execute(delete(failures).where(*self._mine(failure_id)))
                gone = scrubbed.forgotten
        sweep(self._database)
        return gone

    def _newest(self, *conditions: ColumnElement[bool], limit: int) -> list[KeptFailure]:
        mine = select(failures).where(failures.c.tenant == self._tenant, *conditions)
        query = mine.order_by(failures.c.created.desc(), failures.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            return [_kept(row) for row in connection.execute(query)]

    def _mine(self, failure_id: str) -> tuple[ColumnElement[bool], ...]:
        return (failures.c.tenant == self._tenant, failures.c.id == failure_id)


def _kept(row: Row[Any]) -> KeptFailure:
    return KeptFailure(parse(FailureRecord, row.body), row.repo, datetime.fromtimestamp(row.created, UTC))


def _scrub(record: FailureRecord) -> Scrub:
    words = (record.tried, record.what_failed, record.root_cause, record.try_next, record.change)
    return Scrub([record.id], [text for text in words if text])
