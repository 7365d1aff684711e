"""Recall from SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, case, select

from redstart.core.learning import FixCard, Recalled, Signature
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.schema import cards


class SqlMemory:
    """The cards of its database's tenant: 1 for one of the same signature, 0.5 for one of the same family."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[Recalled]:
        same_bug = cards.c.key == signature.key
        same_kind = cards.c.family == signature.family
        found = [
            Recalled(card=card, score=1.0, source="signature") for card in self._cards(tenant, repo, limit, same_bug)
        ]
        if len(found) < limit:
            more = self._cards(tenant, repo, limit - len(found), same_kind, ~same_bug)
            found += [Recalled(card=card, score=0.5, source="family") for card in more]
        return found

    def _cards(self, tenant: str, repo: str, limit: int, *wanted: ColumnElement[bool]) -> list[FixCard]:
        query = (
            select(cards.c.body)
            .where(cards.c.tenant == self._database.tenant, cards.c.tenant == tenant, *wanted)
            .order_by(case((cards.c.repo == repo, 0), else_=1), cards.c.created.desc(), cards.c.id.desc())
            .limit(limit)
        )
        with self._database.reading() as connection:
            bodies = connection.execute(query).scalars().all()
        return [parse(FixCard, body) for body in bodies]
