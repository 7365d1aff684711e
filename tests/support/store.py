"""Databases and blobs without a disk."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
import weakref
from functools import cache
from pathlib import Path

from sqlalchemy import create_engine, insert
from sqlalchemy.pool import StaticPool

from redstart.core.errors import BlobMissing, StoreError
from redstart.core.lesson import Lesson
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import lessons
from redstart.ports.sql.sqlite import prepare_engine


def create_memory_database() -> Database:
    """Create an empty, migrated SQLite database over one connection."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.deserialize(_serialize_migrated())
    engine = prepare_engine(create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool))
    weakref.finalize(engine, connection.close)
    return Database(engine)


@cache
def _serialize_migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "redstart.db"
        Database.open(file).close()
        connection = sqlite3.connect(file)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")  # an in-memory database cannot have a log file
            return connection.serialize()
        finally:
            connection.close()


def put_lesson(database: Database, lesson: Lesson) -> None:
    """Store a lesson as the run of its name would have stored it."""
    fields = {"id": lesson.id, "same_as": lesson.same_as, "scope": lesson.scope.value, "status": lesson.status.value}
    row = {"tenant": database.tenant, "repo": "shop", "run_id": lesson.id, "attempt": 1, "created": 0.0}
    values = {"key": "", "family": lesson.family, "body": lesson.model_dump_json(), **row, **fields}
    with database.connect_for_writing() as connection:
        connection.execute(insert(lessons).values(values))


class MemoryBlobs:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.kept[name] = data
        return name

    def get(self, name: str) -> bytes:
        if name not in self.kept:
            raise BlobMissing(f"blob {name} is missing")
        if hashlib.sha256(self.kept[name]).hexdigest() != name:
            raise StoreError(f"blob {name} is damaged: its bytes are not what was put")
        return self.kept[name]
