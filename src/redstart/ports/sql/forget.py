"""Forgetting for good: words taken out of all that runs wrote down, and out of what the database still keeps of it."""

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
"""A shorter text may stand anywhere, and says nothing by itself; where it is told what it is of, it goes too."""
PROBE = 24
"""Of a longer text its beginning and its end are looked for: a question may have had no room for the middle."""
_CUT = re.compile(r" \[…\] |</?data(?=\b)", re.IGNORECASE)
"""Where a text may stand otherwise than it was said: where it was cut, and where it would end a block of data."""
_LEVELS = 3
"""Texts in JSON, which is a text in JSON, and that again."""
_WORDS = ("summary", "root_cause", "fix", "verification", "test_id")


class JsonScrubber:
    """Finds what has one of these ids in JSON, and what it said wherever else that stands, cut or not."""

    def __init__(self, ids: Collection[str], said: Iterable[str]) -> None:
        self._ids = frozenset(ids)
        pieces = dict.fromkeys(piece.strip() for text in said for piece in _CUT.split(text))
        self.texts = tuple(sorted((item for item in pieces if len(item) >= LEAST), key=len, reverse=True))
        self._forms = _spellings(self.texts)
        self.traces = TextTraces(self.texts)

    def __call__(self, written: str) -> str:
        """The same JSON without the words; the same text where they are not in it."""
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
    """Finds texts, or what was left of them, in bytes of any kind."""

    def __init__(self, texts: Iterable[str]) -> None:
        ends = [part.strip() for text in texts for part in _ends(text)]
        self._forms = tuple(form.encode() for form in _spellings(ends))

    def are_in(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)


def _ends(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= 2 * PROBE else (text[:PROBE], text[-PROBE:])


def _spellings(texts: Iterable[str]) -> tuple[str, ...]:
    """As they are, and as JSON has them, the longest first: one may be a part of another."""
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
"""Where runs write: the table, the column of the run, the row's key after the tenant, and the texts."""
_FINISHED = (Status.finished.value, "ended")
"""The words of this version and of earlier ones."""
_SWEPT = (
    *(cards, vectors, edges, failures, lessons, uses, patterns, pattern_vectors),
    *(runs, steps, events, journal, blobs),
)


class ScrubbedRuns:
    """The runs of a tenant, inside of a transaction, without what is forgotten."""

    def __init__(self, connection: Connection, tenant: str, scrub: JsonScrubber) -> None:
        self._connection, self._tenant, self._scrub = connection, tenant, scrub
        self._named: set[str] = set()

    @property
    def forgotten(self) -> ForgottenTexts:
        """As far as runs were looked through."""
        return ForgottenTexts(self._scrub.texts, frozenset(self._named))

    def look(self, kind: str, ids: Sequence[str], made_by: Iterable[str]) -> list[str]:
        """The runs that made one of these, those that were given one by a call of this kind, and those that go on from
        one of these; what blobs they name is put down.

        Raises `StoreError` where one of them has not ended: it would write the words again.
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
