"""Queries on the edges of the graph. The commit of `remember` writes them."""

from __future__ import annotations

import sys

from sqlalchemy import ColumnElement, and_, func, literal_column, select

from redstart.core.graph import FailingFile, KeptEdge, KnownFix, TypeInMonth
from redstart.core.learning import EdgeKind, FixCard
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.schema import cards, edges, failures

_FILE_EDGE_KINDS = (EdgeKind.retrieved_file.value, EdgeKind.changed_file.value)


class SqlEdges:
    """The edges of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def list_edges(self, *, repo: str | None = None) -> list[KeptEdge]:
        """List all edges, or those of a repo, in the order in which they were written."""
        columns = (edges.c.kind, edges.c.source, edges.c.target, edges.c.repo, edges.c.created)
        order = (edges.c.created, edges.c.run_id, edges.c.attempt, edges.c.kind, edges.c.source, edges.c.target)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(select(*columns).where(*self._mine(repo)).order_by(*order)).all()
        return [KeptEdge(EdgeKind(row.kind), row.source, row.target, row.repo, row.created) for row in rows]

    async def list_files_in_failures(self, *, repo: str | None = None, limit: int = 10) -> list[FailingFile]:
        """List the files that the most failed attempts retrieved or changed."""
        attempts = func.count(func.distinct(edges.c.source))
        run_count = func.count(func.distinct(edges.c.run_id))
        failed = and_(
            failures.c.tenant == edges.c.tenant,
            failures.c.run_id == edges.c.run_id,
            failures.c.attempt == edges.c.attempt,
        )
        query = (
            select(edges.c.repo, edges.c.target, attempts, run_count)
            .join(failures, failed)
            .where(*self._mine(repo), edges.c.kind.in_(_FILE_EDGE_KINDS))
            .group_by(edges.c.repo, edges.c.target)
            .order_by(attempts.desc(), run_count.desc(), edges.c.repo, edges.c.target)
            .limit(limit)
        )
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [
            FailingFile(repo=repo_name, path=path, attempts=attempt_count, runs=count)
            for repo_name, path, attempt_count, count in rows
        ]

    async def list_fixes(self, key: str, *, repo: str | None = None, limit: int = 10) -> list[KnownFix]:
        """List the cards of attempts whose failure signature starts with `key`, newest first."""
        failure_edges, card_edges = edges.alias("red"), edges.alias("left_by")
        # Join on the parts of the indexed key, not on the name that is built from them.
        attempt = (card_edges.c.run_id == failure_edges.c.run_id, card_edges.c.attempt == failure_edges.c.attempt)
        same_attempt = and_(card_edges.c.tenant == failure_edges.c.tenant, *attempt)
        same_card = and_(cards.c.tenant == card_edges.c.tenant, cards.c.id == card_edges.c.target)
        # Not LIKE: its case sensitivity depends on the database.
        alike = (failure_edges.c.target >= key, failure_edges.c.target < key + chr(sys.maxunicode))
        query = (
            select(failure_edges.c.target.label("signature"), cards)
            .join_from(failure_edges, card_edges, same_attempt)
            .join(cards, same_card)
            .where(
                failure_edges.c.tenant == self._tenant, failure_edges.c.kind == EdgeKind.failure_signature.value, *alike
            )
            .where(card_edges.c.kind == EdgeKind.has_fix_card.value)
        )
        if repo is not None:
            query = query.where(failure_edges.c.repo == repo)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query.order_by(cards.c.created.desc(), cards.c.id.desc()).limit(limit)).all()
        parsed_rows = [(row, parse(FixCard, row.body)) for row in rows]
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
            for row, card in parsed_rows
        ]

    async def count_bug_types(self, *, repo: str | None = None, limit: int = 50) -> list[TypeInMonth]:
        """Count the exception types of each repo and month: newest month first, then the most frequent."""
        month = self._format_month(edges.c.created)
        run_count = func.count(func.distinct(edges.c.run_id))
        query = (
            select(edges.c.repo, month, edges.c.target, run_count)
            .where(*self._mine(repo), edges.c.kind == EdgeKind.bug_type.value)
            .group_by(edges.c.repo, month, edges.c.target)
            .order_by(month.desc(), run_count.desc(), edges.c.repo, edges.c.target)
            .limit(limit)
        )
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query).all()
        return [
            TypeInMonth(repo=repo_name, month=month_name, type=name, runs=count)
            for repo_name, month_name, name, count in rows
        ]

    def _mine(self, repo: str | None) -> tuple[ColumnElement[bool], ...]:
        condition = edges.c.tenant == self._tenant
        return (condition,) if repo is None else (condition, edges.c.repo == repo)

    def _format_month(self, moment: ColumnElement[float]) -> ColumnElement[str]:
        # Literals, not bound values: the grouped expression must be the same text.
        if self._database.is_postgres:
            zoned = func.timezone(literal_column("'UTC'"), func.to_timestamp(moment))
            return func.to_char(zoned, literal_column("'YYYY-MM'"))
        return func.strftime(literal_column("'%Y-%m'"), moment, literal_column("'unixepoch'"))
