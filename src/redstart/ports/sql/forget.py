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
from redstart.core.run_status import Control
from redstart.ports.memory.port import ForgottenTexts
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import parse_record
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
from redstart.ports.store.port.journal import compute_digest

FORGOTTEN = "[forgotten]"
MIN_TEXT_LENGTH = 12
"""The minimum length of a text to search for. Shorter ones may occur anywhere; they are removed only by their field."""
PROBE = 24
"""The length of the start and end of a longer text to search for: a question may have dropped the middle."""
_SPLIT_POINTS = re.compile(r" \[…\] |</?data(?=\b)", re.IGNORECASE)
"""Where a stored text may differ from the original: where it was cut, and where it would end a block of data."""
_LEVELS = 3
"""The nesting depth of JSON in JSON strings."""
_CARD_TEXT_FIELDS = ("summary", "root_cause", "fix", "verification", "test_id")


class JsonScrubber:
    """Removes objects with these IDs from JSON, and their texts wherever else they occur, cut or not."""

    def __init__(self, ids: Collection[str], texts: Iterable[str]) -> None:
        self._ids = frozenset(ids)
        pieces = dict.fromkeys(piece.strip() for text in texts for piece in _SPLIT_POINTS.split(text))
        self.texts = tuple(sorted((item for item in pieces if len(item) >= MIN_TEXT_LENGTH), key=len, reverse=True))
        self._forms = _list_spellings(self.texts)
        self.traces = TextTraces(self.texts)

    def __call__(self, written: str) -> str:
        """Return the JSON without the texts, or the unchanged JSON if it does not contain them."""
        if not any(id_ in written for id_ in self._ids) and not any(form in written for form in self._forms):
            return written
        try:
            value = json.loads(written)
        except ValueError:
            return self._replace_forms(written)
        cleaned = self._clean(value)
        return written if cleaned == value else json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._replace_forms(value)
        if isinstance(value, list):
            return [self._clean(item) for item in cast(list[Any], value)]
        if isinstance(value, dict):
            fields = {name: self._clean(item) for name, item in cast(dict[str, Any], value).items()}
            return {**fields, **self._blank_fields(fields)}
        return value

    def _blank_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        if fields.get("id") in self._ids and "debug_steps" in fields:
            return {**dict.fromkeys(_CARD_TEXT_FIELDS, FORGOTTEN), "debug_steps": [], "signature": None}
        ids = [item for item in (fields.get("id"), fields.get("lesson")) if isinstance(item, str)]
        if "advice" in fields and not self._ids.isdisjoint(ids):
            return {"when": FORGOTTEN, "advice": FORGOTTEN}
        return {}

    def _replace_forms(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, FORGOTTEN)
        return text


class TextTraces:
    """Finds texts, or remains of them, in any bytes."""

    def __init__(self, texts: Iterable[str]) -> None:
        ends = [part.strip() for text in texts for part in _split_ends(text)]
        self._forms = tuple(form.encode() for form in _list_spellings(ends))

    def has_match(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)


def _split_ends(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= 2 * PROBE else (text[:PROBE], text[-PROBE:])


def _list_spellings(texts: Iterable[str]) -> tuple[str, ...]:
    """List the texts as they are and escaped as JSON, longest first, because one may be part of another."""
    spellings = dict.fromkeys(texts)
    for _ in range(_LEVELS):
        spellings |= {
            json.dumps(item, ensure_ascii=is_ascii)[1:-1]: None for item in spellings for is_ascii in (True, False)
        }
    return tuple(sorted(spellings, key=len, reverse=True))


_RUN_TEXT_COLUMNS: tuple[tuple[Table, ColumnElement[str], tuple[str, ...], tuple[str, ...]], ...] = (
    (runs, runs.c.id, ("id",), ("state", "first_state")),
    (steps, steps.c.run_id, ("run_id", "version"), ("artifact", "state")),
    (events, events.c.run_id, ("run_id", "seq"), ("body",)),
    (journal, journal.c.run_id, ("run_id", "attempt", "step", "ordinal"), ("request", "result")),
    (patterns, patterns.c.run_id, ("id",), ("body",)),
    (failures, failures.c.run_id, ("id",), ("body",)),
)
"""Where runs write: the table, the column with the run, the row's key without the tenant, and the text columns."""
_FINISHED_STATUSES = (Status.finished.value, "ended")
"""The status values of this version and of earlier ones."""
_VACUUMED_TABLES = (
    *(cards, vectors, edges, failures, lessons, uses, patterns, pattern_vectors),
    *(runs, steps, events, journal, blobs),
)


class ScrubbedRuns:
    """Removes forgotten texts from the runs of a tenant, inside a transaction."""

    def __init__(self, connection: Connection, tenant: str, scrub: JsonScrubber) -> None:
        self._connection, self._tenant, self._scrub = connection, tenant, scrub
        self._blob_names: set[str] = set()

    @property
    def forgotten(self) -> ForgottenTexts:
        """The forgotten texts, and the blobs named by the runs that were searched so far."""
        return ForgottenTexts(self._scrub.texts, frozenset(self._blob_names))

    def find_runs(self, kind: str, ids: Sequence[str], maker_run_ids: Iterable[str]) -> list[str]:
        """Find the runs that made one of these, that received one by a call of this kind, or that continue such a run.

        Also collects the blobs that they name. Raises `StoreError` if one of the runs has not ended, because it would
        write the texts again.
        """
        conditions = (journal.c.tenant == self._tenant, journal.c.kind == kind)
        contains_id = or_(*(journal.c.result.contains(id_, autoescape=True) for id_ in ids))
        run_ids = {
            *maker_run_ids,
            *self._connection.execute(select(journal.c.run_id).where(*conditions, contains_id)).scalars(),
        }
        while True:
            child_query = select(runs.c.id).where(runs.c.tenant == self._tenant, runs.c.parent.in_(run_ids))
            if not (new_run_ids := set(self._connection.execute(child_query).scalars()) - run_ids):
                break
            run_ids |= new_run_ids
        sorted_run_ids = sorted(run_ids)
        open_conditions = (
            runs.c.tenant == self._tenant,
            runs.c.id.in_(sorted_run_ids),
            runs.c.status.not_in(_FINISHED_STATUSES),
        )
        open_runs = select(runs.c.id).where(*open_conditions, runs.c.control != Control.cancel.value)
        if open_run_ids := self._connection.execute(open_runs).scalars().all():
            raise StoreError(
                f"run {open_run_ids[0]} was shown {ids[0]} and has not finished",
                remedy=f"finish it with: redstart resume {open_run_ids[0]}, or end it: redstart runs cancel "
                f"{open_run_ids[0]}",
            )
        for table, run_column, _, texts in _RUN_TEXT_COLUMNS:
            query = select(*(table.c[item] for item in texts)).where(
                table.c.tenant == self._tenant, run_column.in_(sorted_run_ids)
            )
            for row in self._connection.execute(query):
                self._blob_names.update(name for text in row for name in BLOB_NAME.findall(text))
        return sorted_run_ids

    def scrub_runs(self, run_ids: Sequence[str]) -> None:
        for table, run_column, key, texts in _RUN_TEXT_COLUMNS:
            conditions = (table.c.tenant == self._tenant, run_column.in_(run_ids))
            for row in self._connection.execute(select(table).where(*conditions)).all():
                changed = {
                    text: cleaned for text in texts if (cleaned := self._scrub(old := getattr(row, text))) != old
                }
                if changed:
                    row_conditions = [
                        table.c.tenant == self._tenant,
                        *(table.c[item] == getattr(row, item) for item in key),
                    ]
                    self._connection.execute(
                        update(table).where(*row_conditions).values(**_add_digest(table, row, changed))
                    )
        for name in sorted(self._blob_names):
            self._drop_blob(name)

    def _drop_blob(self, name: str) -> None:
        conditions = (blobs.c.tenant == self._tenant, blobs.c.name == name)
        data = self._connection.execute(select(blobs.c.data).where(*conditions)).scalar()
        if data is not None and self._scrub.traces.has_match(bytes(data)):
            self._connection.execute(delete(blobs).where(*conditions))


def _add_digest(table: Table, row: Row[Any], changed: dict[str, str]) -> dict[str, str]:
    """Add the new digest to the changes if the row is a journal record."""
    if table is not journal:
        return changed
    record = parse_record(row)._replace(digest="", **changed)
    return {**changed, "digest": compute_digest(record)}


def sweep(database: Database) -> None:
    """Make the database discard deleted data: SQLite rewrites its file and empties its log."""
    if database.is_postgres:
        with database.connect_for_statement() as connection:
            connection.execute(text(f"VACUUM {', '.join(table.name for table in _VACUUMED_TABLES)}"))
        return
    with database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        if not isinstance(driver, SqliteConnection):
            return
        driver.execute("VACUUM").close()
        is_busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if is_busy:
        raise StoreError(
            "forgotten texts may still be in the log of the run store: another process is reading it",
            remedy="Stop all other processes that use it, and try again.",
        )
