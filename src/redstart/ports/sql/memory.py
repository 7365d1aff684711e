"""Recall from SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, or_, select, text, update
from sqlalchemy.dialects import sqlite

from redstart.core.learning import CardState, FixCard, Recalled, Signature, likeness
from redstart.ports.memory.port import Embedder
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.nearness import Hit, InFile, Nearness, OnServer, Where, is_extended, packed
from redstart.ports.sql.schema import cards, vectors

AT_ONCE = 200
"""How many cards are given their places in one transaction."""
SPARE = 16
"""Hits that are asked for beyond what is wanted: some may have been found before, or be in quarantine by now."""
_SHOWN = CardState.shown.value


class SqlMemory:
    """The cards of its database's tenant. Without an embedder none is found by its words alone.

    What the embedder says of a card is kept, by the first recall after the card was written; a card that another one
    has placed is placed anew. Of a signature the tenant's are searched; by their words all of the repo, and where those
    are too few, all others of the tenant.
    """

    def __init__(self, database: Database, embedder: Embedder | None = None) -> None:
        self._database, self._embedder = database, embedder
        self._nearness: Nearness | None = None if database.is_postgres else InFile()
        self._keep = _keep(database)

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[Recalled]:
        if limit < 1 or tenant != self._database.tenant:
            return []
        of = await self._where(signature)
        with self._database.reading() as connection:
            found = self._same(connection, signature, repo, of, limit)
            if of is not None and len(found) < limit:
                found |= self._alike(connection, repo, of, limit, found)
            return self._whole(connection, found, limit)

    async def _where(self, signature: Signature) -> Where | None:
        if self._embedder is None:
            return None
        await self._catch_up(self._embedder)
        place = (await self._embedder.embed([likeness(signature)]))[0]
        return Where(self._embedder.name, place) if any(place) else None

    def _same(
        self, connection: Connection, signature: Signature, repo: str, of: Where | None, limit: int
    ) -> dict[str, tuple[float, str]]:
        """Score and source by id: those of this bug, and where they do not suffice, those of its kind."""
        near = self._near(connection)
        mine = (cards.c.tenant == self._database.tenant) & (cards.c.state == _SHOWN)
        same_bug = cards.c.key == signature.key
        hits = near.sorted(connection, mine & same_bug, repo, of, limit)
        found = {hit.card_id: (1.0, "signature") for hit in hits}
        if len(found) < limit:
            of_kind = mine & (cards.c.family == signature.family) & ~same_bug
            hits = near.sorted(connection, of_kind, repo, of, limit - len(found))
            found |= {hit.card_id: (0.5, "family") for hit in hits}
        return found

    def _alike(
        self, connection: Connection, repo: str, of: Where, limit: int, known: dict[str, tuple[float, str]]
    ) -> dict[str, tuple[float, str]]:
        near, least = self._near(connection), self._embedder.near if self._embedder else 1.0
        mine = vectors.c.tenant == self._database.tenant
        found: dict[str, tuple[float, str]] = {}
        for scope in (vectors.c.repo == repo, vectors.c.repo != repo):
            if len(known) + len(found) >= limit:
                break
            hits = near.nearest(connection, mine & scope, of, limit + len(known) + SPARE)
            found |= {
                hit.card_id: (0.5 * hit.likeness, "likeness")
                for hit in self._allowed(connection, hits, known)
                if hit.likeness >= least
            }
        return found

    def _allowed(self, connection: Connection, hits: Sequence[Hit], known: dict[str, tuple[float, str]]) -> list[Hit]:
        """Those that were not found before and may be shown."""
        names = [hit.card_id for hit in hits if hit.card_id not in known]
        mine = (cards.c.tenant == self._database.tenant, cards.c.id.in_(names), cards.c.state == _SHOWN)
        shown = set(connection.execute(select(cards.c.id).where(*mine)).scalars())
        return [hit for hit in hits if hit.card_id in shown]

    def _whole(self, connection: Connection, found: dict[str, tuple[float, str]], limit: int) -> list[Recalled]:
        chosen = list(found)[:limit]
        mine = (cards.c.tenant == self._database.tenant, cards.c.id.in_(chosen), cards.c.state == _SHOWN)
        bodies = {row.id: row.body for row in connection.execute(select(cards.c.id, cards.c.body).where(*mine))}
        return [
            Recalled(card=parse(FixCard, bodies[one]), score=round(found[one][0], 4), source=found[one][1])
            for one in chosen
            if one in bodies
        ]

    async def _catch_up(self, embedder: Embedder) -> None:
        """Gives every card its place that has none by this embedder. May be cut short, and done by two at once."""
        other = or_(cards.c.embedded < embedder.name, cards.c.embedded > embedder.name)
        mine: tuple[ColumnElement[bool], ...] = (cards.c.tenant == self._database.tenant, cards.c.state == _SHOWN)
        waiting = select(cards.c.id, cards.c.repo, cards.c.body).where(*mine, other).limit(AT_ONCE)
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(waiting).all()
            if not rows:
                return
            places = await embedder.embed([parse(FixCard, row.body).likeness for row in rows])
            self._place(embedder.name, [(row.id, row.repo, place) for row, place in zip(rows, places, strict=True)])

    def _place(self, model: str, placed: Sequence[tuple[str, str, Sequence[float]]]) -> None:
        tenant = self._database.tenant
        pack: Any = list if self._database.is_postgres else packed
        rows = [
            {"tenant": tenant, "card_id": card_id, "model": model, "repo": repo, "embedding": pack(place)}
            for card_id, repo, place in placed
        ]
        done = update(cards).where(cards.c.tenant == tenant, cards.c.id == bindparam("done")).values(embedded=model)
        with self._database.writing() as connection:
            connection.execute(self._keep, rows)
            connection.execute(done, [{"done": card_id} for card_id, _, _ in placed])

    def _near(self, connection: Connection) -> Nearness:
        if self._nearness is None:
            self._nearness = OnServer(extended=is_extended(connection))
        return self._nearness


def _keep(database: Database) -> Any:
    if database.is_postgres:
        # An array fits either kind of column, and takes no parsing of text.
        values = ":tenant, :card_id, :model, :repo, CAST(:embedding AS real[])"
        return text(f"INSERT INTO vectors VALUES ({values}) ON CONFLICT DO NOTHING")  # noqa: S608
    return sqlite.insert(vectors).on_conflict_do_nothing()
