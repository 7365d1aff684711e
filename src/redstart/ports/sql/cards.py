"""The cards as people see them: all of them, shown or not; and forgetting one for good."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, select, update

from redstart.core.learning import CardState, EdgeKind, FixCard
from redstart.ports.memory.port import Forgotten, KeptCard
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import Scrubbed, sweep
from redstart.ports.sql.schema import cards, edges, vectors
from redstart.ports.sql.scrub import Scrub


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

    async def put(self, card_id: str, state: CardState) -> bool:
        with self._database.single() as connection:
            done = connection.execute(update(cards).where(self._mine(card_id)).values(state=state.value))
        return bool(done.rowcount)

    async def forget(self, card_id: str) -> Forgotten | None:
        """See the port. Also where there is no such card, what earlier ones left in the file is swept out.

        Raises `StoreError` as well where another process keeps the file from being swept: then call it again. A
        server's own log and its backups are the affair of who runs it.
        """
        with self._database.writing() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
            gone = None if row is None else self._forget(connection, parse(FixCard, row.body), row.run_id)
        sweep(self._database)
        return gone

    def _forget(self, connection: Connection, card: FixCard, run_id: str) -> Forgotten:
        said = (card.summary, card.root_cause, card.fix, *card.debug_steps)
        scrubbed = Scrubbed(connection, self._tenant, Scrub([card.id], said))
        scrubbed.of_runs(scrubbed.who_knows("recall", [card.id], [run_id]))
        tied = (edges.c.tenant == self._tenant, edges.c.kind == EdgeKind.has_fix_card.value, edges.c.target == card.id)
        connection.execute(delete(edges).where(*tied))
        connection.execute(delete(vectors).where(vectors.c.tenant == self._tenant, vectors.c.card_id == card.id))
        connection.execute(delete(cards).where(self._mine(card.id)))
        return scrubbed.forgotten

    def _mine(self, card_id: str) -> ColumnElement[bool]:
        return and_(cards.c.tenant == self._tenant, cards.c.id == card_id)


def _kept(row: Row[Any]) -> KeptCard:
    moment = datetime.fromtimestamp(row.created, UTC)
    return KeptCard(parse(FixCard, row.body), CardState(row.state), row.repo, moment)
