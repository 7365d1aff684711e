"""Forget permanently: remove texts from everything that runs stored, and sweep the remains from the database."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Connection as SqliteConnection
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, or_, select, text, update

from redstart.core.errors import StoreError
from redstart.core.run import Status
from redstart.core.standing import Control
from redstart.ports.memory.port import ForgottenTexts
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
from redstart.ports.store.port.journal import digest

FORGOTTEN = "[forgotten]"
LEAST = 12
"""The minimum length of a text to search for. Shorter ones may occur anywhere; they are removed only by their field."""
PROBE = 24
"""The length of the start and end of a longer text to search for: a question may have dropped the middle."""
_CUT = re.compile(r" \[…\] |</?data(?=\b)", re.IGNORECASE)
"""Where a stored text may differ from the original: where it was cut, and where it would end a block of data."""
_LEVELS = 3
"""The nesting depth of JSON in JSON strings."""
_WORDS = ("summary", "root_cause", "fix", "verification", "test_id")


class JsonScrubber:
    """Removes objects with these IDs from JSON, and their texts wherever else they occur, cut or not."""

    def __init__(self, ids: Collection[str], said: Iterable[str]) -> None:
        self._ids = frozenset(ids)
        pieces = dict.fromkeys(piece.strip() for text in said for piece in _CUT.split(text))
        self.texts = tuple(sorted((item for item in pieces if len(item) >= LEAST), key=len, reverse=True))
        self._forms = _spellings(self.texts)
        self.traces = TextTraces(self.texts)

    def __call__(self, written: str) -> str:
        """Return the JSON without the texts, or the unchanged JSON if it does not contain them."""
        if not any(id_ in written for id_ in self._ids) and not any(form in written for form in self._forms):
            return written
        try:
            found = json.loads(written)
        except ValueError:
            return self._plain(written)
        clean = self._clean(found)
        return written if clean == found else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._plain(value)
        if isinstance(value, list):
            return [self._clean(item) for item in cast(list[Any], value)]
        if isinstance(value, dict):
            fields = {name: self._clean(item) for name, item in cast(dict[str, Any], value).items()}
            return {**fields, **self._emptied(fields)}
        return value

    def _emptied(self, fields: dict[str, Any]) -> dict[str, Any]:
        if fields.get("id") in self._ids and "debug_steps" in fields:
            return {**dict.fromkeys(_WORDS, FORGOTTEN), "debug_steps": [], "signature": None}
        named = [item for item in (fields.get("id"), fields.get("lesson")) if isinstance(item, str)]
        if "advice" in fields and not self._ids.isdisjoint(named):
            return {"when": FORGOTTEN, "advice": FORGOTTEN}
        return {}

    def _plain(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, FORGOTTEN)
        return text


class TextTraces:
    """Finds texts, or remains of them, in any bytes."""

    def __init__(self, texts: Iterable[str]) -> None:
        ends = [part.strip() for text in texts for part in _ends(text)]
        self._forms = tuple(form.encode() for form in _spellings(ends))

    def are_in(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)


def _ends(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= 2 * PROBE else (text[:PROBE], text[-PROBE:])


def _spellings(texts: Iterable[str]) -> tuple[str, ...]:
    """List the texts as they are and escaped as JSON, longest first, because one may be part of another."""
    found = dict.fromkeys(texts)
    for _ in range(_LEVELS):
        found |= {json.dumps(item, ensure_ascii=plain)[1:-1]: None for item in found for plain in (True, False)}
    return tuple(sorted(found, key=len, reverse=True))


_WRITTEN: tuple[tuple[Table, ColumnElement[str], tuple[str, ...], tuple[str, ...]], ...] = (
    (runs, runs.c.id, ("id",), ("state", "first_state")),
    (steps, steps.c.run_id, ("run_id", "version"), ("artifact", "state")),
    (events, events.c.run_id, ("run_id", "seq"), ("body",)),
    (journal, journal.c.run_id, ("run_id", "attempt", "step", "ordinal"), ("request", "result")),
    (patterns, patterns.c.run_id, ("id",), ("body",)),
    (failures, failures.c.run_id, ("id",), ("body",)),
)
"""Where runs write: the table, the column with the run, the row's key without the tenant, and the text columns."""
_FINISHED = (Status.finished.value, "ended")
"""The status values of this version and of earlier ones."""
_SWEPT = (
    *(cards, vectors, edges, failures, lessons, uses, patterns, pattern_vectors),
    *(runs, steps, events, journal, blobs),
)


class ScrubbedRuns:
    """Removes forgotten texts from the runs of a tenant, inside a transaction."""

    def __init__(self, connection: Connection, tenant: str, scrub: JsonScrubber) -> None:
        self._connection, self._tenant, self._scrub = connection, tenant, scrub
        self._named: set[str] = set()

    @property
    def forgotten(self) -> ForgottenTexts:
        """The forgotten texts, and the blobs named by the runs that were searched so far."""
        return ForgottenTexts(self._scrub.texts, frozenset(self._named))

    def look(self, kind: str, ids: Sequence[str], made_by: Iterable[str]) -> list[str]:
        """Find the runs that made one of these, that received one by a call of this kind, or that continue such a run.

        Also collects the blobs that they name. Raises `StoreError` if one of the runs has not ended, because it would
        write the texts again.
        """
        asked = (journal.c.tenant == self._tenant, journal.c.kind == kind)
        given = or_(*(journal.c.result.contains(id_, autoescape=True) for id_ in ids))
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
            written = select(*(table.c[item] for item in texts)).where(
                table.c.tenant == self._tenant, of_run.in_(known)
            )
            for row in self._connection.execute(written):
                self._named.update(name for text in row for name in BLOB_NAME.findall(text))
        return known

    def out_of_runs(self, run_ids: Sequence[str]) -> None:
        for table, of_run, key, texts in _WRITTEN:
            mine = (table.c.tenant == self._tenant, of_run.in_(run_ids))
            for row in self._connection.execute(select(table).where(*mine)).all():
                changed = {text: clean for text in texts if (clean := self._scrub(old := getattr(row, text))) != old}
                if changed:
                    same = [table.c.tenant == self._tenant, *(table.c[item] == getattr(row, item) for item in key)]
                    self._connection.execute(update(table).where(*same).values(**_sealed(table, row, changed)))
        for name in sorted(self._named):
            self._drop_blob(name)

    def _drop_blob(self, name: str) -> None:
        mine = (blobs.c.tenant == self._tenant, blobs.c.name == name)
        data = self._connection.execute(select(blobs.c.data).where(*mine)).scalar()
        if data is not None and self._scrub.traces.are_in(bytes(data)):
            self._connection.execute(delete(blobs).where(*mine))


def _sealed(table: Table, row: Row[Any], changed: dict[str, str]) -> dict[str, str]:
    """Add the new digest to the changes if the row is a journal record."""
    if table is not journal:
        return changed
    record = record_of(row)._replace(digest="", **changed)
    return {**changed, "digest": digest(record)}


def sweep(database: Database) -> None:
    """Make the database discard deleted data: SQLite rewrites its file and empties its log."""
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
            "forgotten texts may still be in the log of the run store: another process is reading it",
            remedy="Stop all other processes that use it, and try again.",
        )
