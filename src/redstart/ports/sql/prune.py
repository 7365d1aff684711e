"""Prune runs in SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, select

from redstart.core.run import Status
from redstart.core.run_status import RunRow
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import events, journal, person_messages, runs, steps
from redstart.ports.sql.store import SUMMARY_COLUMNS, run_row

BLOB_NAME = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

_PARTS = (steps, events, journal, person_messages)
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
    blob_names: frozenset[str]
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
        with self._database.connect_for_snapshot() if dry else self._database.connect_for_writing() as connection:
            removed = _list_removable(connection, tenant, before, keep, is_over)
            if removed and not dry:
                _forget(connection, tenant, removed)
            return PrunedRuns(removed, _find_named_blobs(connection, tenant, frozenset(removed)))


def _list_removable(
    connection: Connection, tenant: str, before: float, keep: int, is_over: Callable[[RunRow], bool]
) -> tuple[str, ...]:
    """List the runs to remove, oldest first."""
    query = select(*SUMMARY_COLUMNS).where(runs.c.tenant == tenant).order_by(runs.c.updated.desc(), runs.c.id.desc())
    newest_first = [row for row in map(run_row, connection.execute(query).all()) if is_over(row)]
    old = {row.run_id: row for row in reversed(newest_first[keep:]) if row.updated.timestamp() < before}
    return tuple(
        run_id
        for run_id, row in old.items()
        if row.status is Status.finished or "." not in run_id or run_id.partition(".")[0] in old
    )


def _forget(connection: Connection, tenant: str, removed: tuple[str, ...]) -> None:
    parameters = [{"of": tenant, "gone": run_id} for run_id in removed]
    for run_column in (*(table.c.run_id for table in _PARTS), runs.c.id):
        table = run_column.table
        connection.execute(
            delete(table).where(table.c.tenant == bindparam("of"), run_column == bindparam("gone")), parameters
        )


def _find_named_blobs(connection: Connection, tenant: str, removed: frozenset[str]) -> frozenset[str]:
    names: set[str] = set()
    for run_column, *columns in _HOLDERS:
        query = select(run_column, *columns).where(run_column.table.c.tenant == tenant)
        rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
        for run_id, *texts in rows:
            if run_id not in removed:
                for text in texts:
                    names.update(BLOB_NAME.findall(text))
    return frozenset(names)
