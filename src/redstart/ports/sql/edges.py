"""Queries on the edges of the graph. The commit of `remember` writes them."""

from __future__ import annotations

import sys

from sqlalchemy import ColumnElement, and_, func, literal_column, select

from redstart.core.graph import FailingFile, KeptEdge, KnownFix, TypeInMonth
from redstart.core.learning import EdgeKind, FixCard
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.schema import cards, edges, failures

_TOUCHED = (EdgeKind.retrieved_file.value, EdgeKind.changed_file.value)


class SqlEdges:
    """The edges of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def edges(self, *, repo: str | None = None) -> list[KeptEdge]:
        """List all edges, or those of a repo, in the order in which they were written."""
        shown = (edges.c.kind, edges.c.source, edges.c.target, edges.c.repo, edges.c.created)
        by = (edges.c.created, edges.c.run_id, edges.c.attempt, edges.c.kind, edges.c.source, edges.c.target)
        with self._database.reading() as connection:
            rows = connection.execute(select(*shown).where(*self._mine(repo)).order_by(*by)).all()
        return [KeptEdge(EdgeKind(row.kind), row.source, row.target, row.repo, row.created) for row in rows]

    async def files_in_failures(self, *, repo: str | None = None, limit: int = 10) -> list[FailingFile]:
        """List the files that the most failed attempts retrieved or changed."""
        attempts = func.count(func.distinct(edges.c.source))
        met = func.count(func.distinct(edges.c.run_id))
        failed = and_(
            failures.c.tenant == edges.c.tenant,
            failures.c.run_id == edges.c.run_id,
            failures.c.attempt == edges.c.attempt,
        )
        query = (
            select(edges.c.repo, edges.c.target, attempts, met)
            .join(failures, failed)
            .where(*self._mine(repo), edges.c.kind.in_(_TOUCHED))
            .group_by(edges.c.repo, edges.c.target)
            .order_by(attempts.desc(), met.desc(), edges.c.repo, edges.c.target)
            .limit(limit)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [FailingFile(repo=of, path=path, attempts=many, runs=count) for of, path, many, count in rows]

    async def fixes_of(self, key: str, *, repo: str | None = None, limit: int = 10) -> list[KnownFix]:
        """List the cards of attempts whose failure signature starts with `key`, newest first."""
        red, left = edges.alias("red"), edges.alias("left_by")
        # Join on the parts of the indexed key, not on the name that is built from them.
        attempt = (left.c.run_id == red.c.run_id, left.c.attempt == red.c.attempt)
        same = and_(left.c.tenant == red.c.tenant, *attempt)
        kept = and_(cards.c.tenant == left.c.tenant, cards.c.id == left.c.target)
        # Not LIKE: its case sensitivity depends on the database.
        alike = (red.c.target >= key, red.c.target < key + chr(sys.maxunicode))
        query = (
            select(red.c.target.label("signature"), cards)
            .join_from(red, left, same)
            .join(cards, kept)
            .where(red.c.tenant == self._tenant, red.c.kind == EdgeKind.failure_signature.value, *alike)
            .where(left.c.kind == EdgeKind.has_fix_card.value)
        )
        if repo is not None:
            query = query.where(red.c.repo == repo)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(cards.c.created.desc(), cards.c.id.desc()).limit(limit)).all()
        found = [(row, parse(FixCard, row.body)) for row in rows]
        return [
            KnownFix(
                card=row.id,
                state=row.state,
                signature=row.signature,
                repo=row.repo,
                run=row.run_id,
                created=row.created,
                summary=card.summary,
                files=card.files_changed,
            )
            for row, card in found
        ]

    async def bug_types(self, *, repo: str | None = None, limit: int = 50) -> list[TypeInMonth]:
        """Count the exception types of each repo and month: newest month first, then the most frequent."""
        month = self._month(edges.c.created)
        met = func.count(func.distinct(edges.c.run_id))
        query = (
            select(edges.c.repo, month, edges.c.target, met)
            .where(*self._mine(repo), edges.c.kind == EdgeKind.bug_type.value)
            .group_by(edges.c.repo, month, edges.c.target)
            .order_by(month.desc(), met.desc(), edges.c.repo, edges.c.target)
            .limit(limit)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [TypeInMonth(repo=of, month=when, type=name, runs=count) for of, when, name, count in rows]

    def _mine(self, repo: str | None) -> tuple[ColumnElement[bool], ...]:
        mine = edges.c.tenant == self._tenant
        return (mine,) if repo is None else (mine, edges.c.repo == repo)

    def _month(self, moment: ColumnElement[float]) -> ColumnElement[str]:
        # Literals, not bound values: the grouped expression must be the same text.
        if self._database.is_postgres:
            zoned = func.timezone(literal_column("'UTC'"), func.to_timestamp(moment))
            return func.to_char(zoned, literal_column("'YYYY-MM'"))
        return func.strftime(literal_column("'%Y-%m'"), moment, literal_column("'unixepoch'"))
