"""Stores for benches: a database of each kind, holding a run as a real run leaves it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from _environments import bring_postgres
from redstart.app.servers.postgres import serve_postgres
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from support import rig as play
from support.rig import Kept, make_rig

KINDS = ("sqlite", "postgres")


@contextmanager
def provide_locations(folder: Path) -> Iterator[dict[str, Iterator[Path | str]]]:
    """For each kind of database, provide as many locations for new databases as the caller asks for."""
    bring_postgres()
    with serve_postgres(folder / "server") as server:

        def generate_files() -> Iterator[Path | str]:
            number = 0
            while True:
                number += 1
                yield folder / f"store-{number}.db"

        def generate_databases() -> Iterator[Path | str]:
            while True:
                yield server.make_database()

        yield {"sqlite": generate_files(), "postgres": generate_databases()}


def keep_a_run(database: Database, folder: Path) -> str:
    """Record a run of two attempts, driven to its end by a scripted model, and return its ID."""

    async def go() -> str:
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        run_id = await rig.begin()
        await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)
        return run_id

    stores = Kept(SqlStore(database, time.time), SqlJournal(database), SqlMemory(database), SqlLessonStore(database))
    rig = make_rig(folder, lambda: stores)
    try:
        return asyncio.run(go())
    finally:
        rig.trees.close()


_NUMBERS = "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < :count)"
_COPIES = (
    "INSERT INTO runs (tenant, id, mode, status, result, goal, repo, folder, parent, fence, version, control, state,"
    " first_state, created, updated) SELECT tenant, 'run-' || i, mode, 'running', '', goal, repo, '/home/' || (i % 20),"
    " parent, 0, version, '', replace(state, :source, 'run-' || i), first_state, created + i, updated + i"
    " FROM runs, numbers WHERE id = :source",
    "INSERT INTO steps SELECT tenant, 'run-' || i, version, attempt, step, artifact, state"
    " FROM steps, numbers WHERE run_id = :source",
    "INSERT INTO events SELECT tenant, 'run-' || i, seq, body FROM events, numbers WHERE run_id = :source",
    "INSERT INTO journal (tenant, run_id, attempt, step, ordinal, kind, request_hash, request, result, digest,"
    " position) SELECT tenant, 'run-' || i, attempt, step, ordinal, kind, request_hash, request, result,"
    " digest, position FROM journal, numbers WHERE run_id = :source",
)


def fill(database: Database, source: str, count: int) -> None:
    """Copy the run `source` with all its rows to `run-1`, `run-2` … until there are `count` copies."""
    with database.connect_for_writing() as connection:
        for copies in _COPIES:
            connection.execute(text(f"{_NUMBERS} {copies}"), {"count": count, "source": source})
            if database.is_postgres:
                connection.execute(text("ANALYZE runs"))  # otherwise it plans as if there were a single run
    if database.is_postgres:
        with database.connect_for_statement() as connection:
            connection.execute(text("VACUUM ANALYZE"))
