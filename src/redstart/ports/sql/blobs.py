"""Blobs in SQL."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from redstart.core.errors import BlobMissing, StoreError
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import blobs
from redstart.ports.store.port.blobs import KeptBlob

_NAME = re.compile(r"[0-9a-f]{64}")
_OWN_BLOB = (blobs.c.tenant == bindparam("my_tenant"), blobs.c.name == bindparam("my_name"))
# A truncated blob is put again. To put an existing blob, only its name is sent, not its bytes.
_PUT_AGAIN = (
    update(blobs)
    .where(*_OWN_BLOB, func.length(blobs.c.data) == bindparam("size"))
    .values(put=bindparam("now"))
    .returning(blobs.c.put)
)
_GET = select(blobs.c.data).where(*_OWN_BLOB)
_AT_ONCE = 100


class SqlBlobs:
    """The blobs of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = postgresql.insert if database.is_postgres else sqlite.insert
        insert_statement = insert(blobs)
        new = {"data": insert_statement.excluded.data, "put": insert_statement.excluded.put}
        self._put_statement = insert_statement.on_conflict_do_update(index_elements=["tenant", "name"], set_=new)

    def put(self, data: bytes) -> str:
        """Store the bytes and return their name. Raises `StoreError` if they cannot be written."""
        name, now = hashlib.sha256(data).hexdigest(), time.time()
        with self._database.connect_for_statement() as connection:
            updated = connection.execute(_PUT_AGAIN, {**self._build_key(name), "size": len(data), "now": now}).first()
        if updated is None:
            row = {"tenant": self._database.tenant, "name": name, "data": data, "put": now}
            with self._database.connect_for_statement() as connection:
                connection.execute(self._put_statement, row)
        return name

    def get(self, name: str) -> bytes:
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} is not the name of a blob")
        with self._database.connect_for_reading() as connection:
            data = connection.execute(_GET, self._build_key(name)).scalar()
        if data is None:
            raise BlobMissing(f"blob {name} is missing")
        if hashlib.sha256(data).hexdigest() != name:
            raise StoreError(f"blob {name} is damaged: its bytes are not what was put")
        return bytes(data)

    def list_blobs(self) -> Iterator[KeptBlob]:
        """List every blob, without reading its bytes."""
        query = select(blobs.c.name, func.length(blobs.c.data), blobs.c.put)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query.where(blobs.c.tenant == self._database.tenant)).all()
        for name, size, put_at in rows:
            yield KeptBlob(name, size, put_at)

    def read_texts(self, names: Iterable[str]) -> Iterator[str]:
        """Read those of the blobs that start like JSON. Missing blobs are skipped."""
        conditions = (blobs.c.tenant == self._database.tenant, func.substr(blobs.c.data, 1, 1) == b"{")
        for batch in _split_batches(names):
            with self._database.connect_for_reading() as connection:
                bodies = (
                    connection.execute(select(blobs.c.data).where(*conditions, blobs.c.name.in_(batch))).scalars().all()
                )
            for data in bodies:
                yield bytes(data).decode(errors="replace")

    def drop(self, names: Iterable[str], before: float) -> None:
        """Remove those of the blobs that were last put before that time. A blob that is put meanwhile stays."""
        conditions = (blobs.c.tenant == self._database.tenant, blobs.c.put < before)
        for batch in _split_batches(names):
            with self._database.connect_for_statement() as connection:
                connection.execute(delete(blobs).where(*conditions, blobs.c.name.in_(batch)))

    def _build_key(self, name: str) -> dict[str, str]:
        return {"my_tenant": self._database.tenant, "my_name": name}


def _split_batches(names: Iterable[str]) -> Iterator[list[str]]:
    waiting = sorted(names)
    for start in range(0, len(waiting), _AT_ONCE):
        yield waiting[start : start + _AT_ONCE]
