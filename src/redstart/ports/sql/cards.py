"""The cards as people see them: all of them, shown or not; and forgetting one for good."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from sqlite3 import Connection as SqliteConnection
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, Row, Table, and_, delete, func, select, text, update

from redstart.core.errors import StoreError
from redstart.core.learning import CardState, EdgeKind, FixCard, Recalled
from redstart.core.run import Status
from redstart.ports.memory.port import Approval, Forgotten, Holdings, KeptCard
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.journal import record_of
from redstart.ports.sql.prune import BLOB_NAME
from redstart.ports.sql.schema import blobs, cards, edges, events, failures, journal, runs, steps, vectors
from redstart.ports.sql.scrub import Scrub
from redstart.ports.store.port import digest

_WRITTEN: tuple[tuple[Table, ColumnElement[str], tuple[str, ...], tuple[str, ...]], ...] = (
    (runs, runs.c.id, ("id",), ("state", "first_state")),
    (steps, steps.c.run_id, ("run_id", "version"), ("artifact", "state")),
    (events, events.c.run_id, ("run_id", "seq"), ("body",)),
    (journal, journal.c.run_id, ("run_id", "attempt", "step", "ordinal"), ("request", "result")),
)
"""Where runs write: the table, the column of the run, the row's key after the tenant, and the texts."""
_RECALLED = TypeAdapter(list[Recalled])
_AT_ONCE = 100
_SWEPT = (cards, vectors, edges, runs, steps, events, journal, blobs)


class SqlCards:
    """Of its database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def cards(self, *, repo: str | None = None, limit: int = 50) -> list[KeptCard]:
        query = select(cards).where(cards.c.tenant == self._tenant)
        if repo is not None:
            query = query.where(cards.c.repo == repo)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(cards.c.created.desc(), cards.c.id.desc()).limit(limit)).all()
        return [_kept(row) for row in rows]

    async def card(self, card_id: str) -> KeptCard | None:
        with self._database.reading() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
        return None if row is None else _kept(row)

    async def beginning(self, prefix: str, limit: int) -> list[str]:
        # Not LIKE: whether that minds upper and lower case depends on the database.
        alike = (cards.c.id >= prefix, cards.c.id < prefix + chr(sys.maxunicode))
        query = select(cards.c.id).where(cards.c.tenant == self._tenant, *alike).order_by(cards.c.id).limit(limit)
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    async def put(self, card_id: str, state: CardState, approval: Approval | None = None) -> bool:
        with self._database.writing() as connection:
            body = connection.execute(select(cards.c.body).where(self._mine(card_id))).scalar()
            if body is None:
                return False
            card = parse(FixCard, body)
            origin = {name: said for name, said in card.provenance.items() if name not in Approval._fields}
            if approval is not None:
                origin |= {"approved_by": approval.approved_by, "approved_at": approval.approved_at}
            new = card.model_copy(update={"provenance": origin}).model_dump_json()
            connection.execute(update(cards).where(self._mine(card_id)).values(state=state.value, body=new))
        return True

    async def holdings(self) -> Holdings:
        mine, count = cards.c.tenant == self._tenant, func.count()
        states = select(cards.c.state, count).where(mine).group_by(cards.c.state).order_by(cards.c.state)
        repos = select(cards.c.repo, count).where(mine).group_by(cards.c.repo).order_by(count.desc(), cards.c.repo)
        failed = select(count).select_from(failures).where(failures.c.tenant == self._tenant)
        with self._database.steady() as connection:
            return Holdings(
                {row[0]: row[1] for row in connection.execute(states)},
                {row[0]: row[1] for row in connection.execute(repos)},
                connection.execute(failed).scalar_one(),
                self._recalls(connection),
            )

    def _recalls(self, connection: Connection) -> dict[str, frozenset[str]]:
        asked = (journal.c.tenant == self._tenant, journal.c.kind == "recall", journal.c.result != "[]")
        query = select(journal.c.run_id, journal.c.result).where(*asked)
        found: dict[str, set[str]] = {}
        for run_id, result in connection.execution_options(yield_per=_AT_ONCE).execute(query):
            for one in _RECALLED.validate_json(result):
                found.setdefault(one.card.id, set()).add(run_id)
        return {card_id: frozenset(known) for card_id, known in found.items()}

    async def forget(self, card_id: str) -> Forgotten | None:
        """See the port. Also where there is no such card, what earlier ones left in the file is swept out.

        Raises `StoreError` as well where another process keeps the file from being swept: then call it again. A
        server's own log and its backups are the affair of who runs it.
        """
        with self._database.writing() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
            gone = None if row is None else self._forget(connection, parse(FixCard, row.body), row.run_id)
        _sweep(self._database)
        return gone

    async def told(self, card_id: str) -> Forgotten | None:
        with self._database.steady() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
            if row is None:
                return None
            named = self._named(connection, self._who_knows(connection, card_id, row.run_id))
        return Forgotten(Scrub(parse(FixCard, row.body)).texts, named)

    def _forget(self, connection: Connection, card: FixCard, run_id: str) -> Forgotten:
        knowing = self._who_knows(connection, card.id, run_id)
        scrub, named = Scrub(card), self._named(connection, knowing)
        for table, of_run, key, texts in _WRITTEN:
            mine = (table.c.tenant == self._tenant, of_run.in_(knowing))
            for row in connection.execute(select(table).where(*mine)).all():
                changed = {one: clean for one in texts if (clean := scrub(old := getattr(row, one))) != old}
                if changed:
                    same = [table.c.tenant == self._tenant, *(table.c[one] == getattr(row, one) for one in key)]
                    connection.execute(update(table).where(*same).values(**_sealed(table, row, changed)))
        self._drop_blobs(connection, named, scrub)
        tied = (edges.c.tenant == self._tenant, edges.c.kind == EdgeKind.has_fix_card.value, edges.c.target == card.id)
        connection.execute(delete(edges).where(*tied))
        connection.execute(delete(vectors).where(vectors.c.tenant == self._tenant, vectors.c.card_id == card.id))
        connection.execute(delete(cards).where(self._mine(card.id)))
        return Forgotten(scrub.texts, named)

    def _named(self, connection: Connection, knowing: list[str]) -> frozenset[str]:
        """The blobs that these runs name."""
        found: set[str] = set()
        for table, of_run, _, texts in _WRITTEN:
            mine = (table.c.tenant == self._tenant, of_run.in_(knowing))
            for row in connection.execute(select(*(table.c[one] for one in texts)).where(*mine)):
                found.update(name for text in row for name in BLOB_NAME.findall(text))
        return frozenset(found)

    def _who_knows(self, connection: Connection, card_id: str, run_id: str) -> list[str]:
        """The run that made it, those that recalled it, and those that go on from one of these."""
        asked = (journal.c.tenant == self._tenant, journal.c.kind == "recall")
        told = select(journal.c.run_id).where(*asked, journal.c.result.contains(card_id, autoescape=True))
        found = {run_id, *connection.execute(told).scalars()}
        while True:
            later = select(runs.c.id).where(runs.c.tenant == self._tenant, runs.c.parent.in_(found))
            if not (more := set(connection.execute(later).scalars()) - found):
                break
            found |= more
        known = sorted(found)
        mine = (runs.c.tenant == self._tenant, runs.c.id.in_(known), runs.c.status != Status.ended.value)
        if busy := connection.execute(select(runs.c.id).where(*mine)).scalars().all():
            raise StoreError(
                f"run {busy[0]} knows {card_id} and has not ended",
                remedy=f"Let it come to its end: redstart resume {busy[0]}",
            )
        return known

    def _drop_blobs(self, connection: Connection, named: frozenset[str], scrub: Scrub) -> None:
        for name in sorted(named):
            mine = (blobs.c.tenant == self._tenant, blobs.c.name == name)
            data = connection.execute(select(blobs.c.data).where(*mine)).scalar()
            if data is not None and scrub.traces.are_in(bytes(data)):
                connection.execute(delete(blobs).where(*mine))

    def _mine(self, card_id: str) -> ColumnElement[bool]:
        return and_(cards.c.tenant == self._tenant, cards.c.id == card_id)


def _kept(row: Row[Any]) -> KeptCard:
    moment = datetime.fromtimestamp(row.created, UTC)
    return KeptCard(parse(FixCard, row.body), CardState(row.state), row.repo, moment)


def _sealed(table: Table, row: Row[Any], changed: dict[str, str]) -> dict[str, str]:
    """With the digest that a changed record of the journal has."""
    if table is not journal:
        return changed
    record = record_of(row)._replace(digest="", **changed)
    return {**changed, "digest": digest(record)}


def _sweep(database: Database) -> None:
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
