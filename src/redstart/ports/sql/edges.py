"""What belongs together, read back; the commit of `remember` writes it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from redstart.core.learning import Edge, EdgeKind
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import cards, edges, failures


class SqlEdges:
    """Of its database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def edges(self, *, repo: str | None = None) -> list[Edge]:
        """All of them, or those of a repo, in the order in which they were written."""
        query = select(edges.c.kind, edges.c.source, edges.c.target).where(edges.c.tenant == self._tenant)
        if repo is not None:
            query = query.where(edges.c.repo == repo)
        ordered = query.order_by(edges.c.created, edges.c.run_id, edges.c.attempt, edges.c.kind, edges.c.target)
        with self._database.reading() as connection:
            rows = connection.execute(ordered).all()
        return [Edge(kind=EdgeKind(kind), source=source, target=target) for kind, source, target in rows]

    async def files_in_failures(self, *, repo: str | None = None, limit: int = 10) -> list[tuple[str, int]]:
        """The files that most failed attempts were shown or changed, each with how many attempts those are."""
        attempts = func.count(func.distinct(edges.c.source))
        touched = (EdgeKind.retrieved_file.value, EdgeKind.changed_file.value)
        same = (failures.c.tenant == edges.c.tenant, failures.c.run_id == edges.c.run_id)
        query = (
            select(edges.c.target, attempts)
            .join(failures, same[0] & same[1] & (failures.c.attempt == edges.c.attempt))
            .where(edges.c.tenant == self._tenant, edges.c.kind.in_(touched))
        )
        return self._counted(query, edges.c.target, attempts, repo, limit)

    async def fixes_of(self, key: str) -> list[str]:
        """The ids of the cards that fixed this signature, the newest first."""
        mine = (cards.c.tenant == self._tenant, cards.c.key == key)
        query = select(cards.c.id).where(*mine).order_by(cards.c.created.desc(), cards.c.id.desc())
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    async def bug_types(self, *, repo: str | None = None, limit: int = 10) -> list[tuple[str, int]]:
        """The types of exceptions, each with in how many runs it was met."""
        met = func.count(func.distinct(edges.c.run_id))
        mine = (edges.c.tenant == self._tenant, edges.c.kind == EdgeKind.bug_type.value)
        return self._counted(select(edges.c.target, met).where(*mine), edges.c.target, met, repo, limit)

    def _counted(
        self,
        query: Select[Any, int],
        what: ColumnElement[str],
        number: ColumnElement[int],
        repo: str | None,
        limit: int,
    ) -> list[tuple[str, int]]:
        if repo is not None:
            query = query.where(edges.c.repo == repo)
        ordered = query.group_by(what).order_by(number.desc(), what).limit(limit)
        with self._database.reading() as connection:
            return [(row[0], row[1]) for row in connection.execute(ordered)]
