"""Prune runs in SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select

from redstart.core.run import Status
from redstart.core.standing import RunRow
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import events, journal, runs, steps, told
from redstart.ports.sql.store import SHOWN, run_row

BLOB_NAME = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

_PARTS = (steps, events, journal, told)
_HOLDERS = (
    (runs.c.id, runs.c.state, runs.c.first_state),
    (steps.c.run_id, steps.c.artifact, steps.c.state),
    (journal.c.run_id, journal.c.request, journal.c.result),
)
"""The columns in which a row names blobs, each preceded by the column of the row's run."""
_ROWS_AT_ONCE = 100


class PrunedRuns(NamedTuple):
    runs: tuple[str, ...]
    """The runs that were removed, or would be; oldest first."""
    named: frozenset[str]
    """Every blob that a remaining run names."""


class SqlPrune:
    """Prunes the runs of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prune(
        self, before: float, keep: int, *, is_over: Callable[[RunRow], bool], dry: bool = False
    ) -> PrunedRuns:
        """Remove the ended runs that were last changed before that time, except the `keep` newest of them.

        A run's steps, events, journal and messages from people are removed with it, in one transaction. What it learned
        stays: cards, failures, patterns and edit statistics.
        With `dry` nothing is written. An unfinished child run is removed with its parent, never before it.
        """
        tenant = self._database.tenant
        with self._database.steady() if dry else self._database.writing() as connection:
            gone = _over(connection, tenant, before, keep, is_over)
            if gone and not dry:
                _forget(connection, tenant, gone)
            return PrunedRuns(gone, _named(connection, tenant, frozenset(gone)))


def _over(
    connection: Connection, tenant: str, before: float, keep: int, is_over: Callable[[RunRow], bool]
) -> tuple[str, ...]:
    """List the runs to remove, oldest first."""
    mine = select(*SHOWN).where(runs.c.tenant == tenant).order_by(runs.c.updated.desc(), runs.c.id.desc())
    newest_first = [row for row in map(run_row, connection.execute(mine).all()) if is_over(row)]
    old = {row.run_id: row for row in reversed(newest_first[keep:]) if row.updated.timestamp() < before}
    return tuple(
        run_id
        for run_id, row in old.items()
        if row.status is Status.finished or "." not in run_id or run_id.partition(".")[0] in old
    )


def _forget(connection: Connection, tenant: str, gone: tuple[str, ...]) -> None:
    which = [{"of": tenant, "gone": run_id} for run_id in gone]
    for of_run in (*(table.c.run_id for table in _PARTS), runs.c.id):
        table = of_run.table
        connection.execute(delete(table).where(table.c.tenant == bindparam("of"), of_run == bindparam("gone")), which)


def _named(connection: Connection, tenant: str, gone: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for of_run, *columns in _HOLDERS:
        mine = select(of_run, *columns).where(of_run.table.c.tenant == tenant)
        rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(mine)
        for run_id, *texts in rows:
            if run_id not in gone:
                for text in texts:
                    found.update(BLOB_NAME.findall(text))
    return frozenset(found)
