"""Read the newest runs of a SQLite store without loading slow libraries, for shell completion."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

LOCK_TIMEOUT_SECONDS = 0.2
"""The seconds to wait for a store that another process is writing to."""
_RECENT_QUERY = """
SELECT id, mode, CASE result WHEN '' THEN status ELSE result END, repo FROM runs
WHERE tenant = ? AND errand = 0 AND id >= ? AND id < ? {only} ORDER BY created DESC, id DESC LIMIT ?
"""
_UNFINISHED_CONDITION = "AND status NOT IN ('finished', 'ended') AND control <> 'cancel'"


class RecentRun(NamedTuple):
    run_id: str
    mode: str
    state: str
    """The run's result, or its status if it has none."""
    repo: str


def read_recent_runs(
    database: Path, *, tenant: str, prefix: str, limit: int, unfinished: bool = False
) -> list[RecentRun]:
    """Read runs, newest first. Returns none if the file is missing or cannot be read now.

    With `unfinished`, only runs that are neither finished nor cancelled.
    """
    try:
        with closing(
            sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=LOCK_TIMEOUT_SECONDS)
        ) as connection:
            query = _RECENT_QUERY.format(only=_UNFINISHED_CONDITION if unfinished else "")
            rows = connection.execute(query, (tenant, prefix, prefix + chr(sys.maxunicode), limit)).fetchall()
    except sqlite3.Error:
        return []
    return [RecentRun(*row) for row in rows]
