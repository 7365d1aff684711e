"""Patterns in SQL: an exact search by goal over all patterns of the tenant. `remember` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Numeric, Subquery, bindparam, cast, delete, func, or_, select, text, update
from sqlalchemy.dialects import sqlite

from redstart.core.learning import CardState
from redstart.core.pattern import RecalledPattern, SolutionPattern, extract_goal_words
from redstart.ports.memory.port import ForgottenTexts, GoalEmbedder
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import JsonScrubber, ScrubbedRuns, sweep
from redstart.ports.sql.schema import pattern_vectors, patterns
from redstart.ports.sql.similarity import (
    HUNDREDTHS,
    FailureVector,
    build_product,
    build_product_sql,
    is_extended,
    pack_vector,
)

AT_ONCE = 200
"""How many patterns get their vectors in one transaction."""


class _Wanted(NamedTuple):
    vector: FailureVector
    repo: str
    min_likeness: float
    limit: int


class _Hit(NamedTuple):
    likeness: float
    same_repo: bool
    created: float
    pattern_id: str


class SqlPatterns:
    """The patterns of the database's tenant.

    The first recall after a pattern was written computes its vector. With another embedder, the vector is computed
    again. Vectors of different models are never compared. Without an embedder no pattern is found.
    """

    def __init__(self, database: Database, embedder: GoalEmbedder | None = None) -> None:
        self._database, self._embedder, self._tenant = database, embedder, database.tenant
        self._extended: bool | None = None

    async def find_similar(self, goal: str, *, repo: str, limit: int) -> list[RecalledPattern]:
        """Find patterns with a similar goal; see `Memory.patterns`."""
        embedder = self._embedder
        if embedder is None or limit < 1:
            return []
        place = (await embedder.embed([extract_goal_words(goal)]))[0]
        if not any(place):
            return []
        await self._compute_missing_vectors(embedder)
        query = _Wanted(FailureVector(embedder.name, place), repo, embedder.near_goals, limit)
        find = self._on_server if self._database.is_postgres else self._in_file
        with self._database.connect_for_reading() as connection:
            hits = find(connection, query)
            conditions = (patterns.c.tenant == self._tenant, patterns.c.id.in_([hit.pattern_id for hit in hits]))
            bodies = {
                row.id: row.body
                for row in connection.execute(select(patterns.c.id, patterns.c.body).where(*conditions))
            }
        return [
            RecalledPattern(pattern=parse(SolutionPattern, bodies[hit.pattern_id]), likeness=round(hit.likeness, 4))
            for hit in hits
            if hit.pattern_id in bodies
        ]

    async def forget(self, pattern_id: str) -> ForgottenTexts | None:
        """Remove a pattern, and its plan from everything that runs stored; see `SqlCards.forget`.

        Returns None if it is unknown. The goal stays with its run: it belongs to the user, and is removed when that run
        is pruned.
        """
        conditions = (patterns.c.tenant == self._tenant, patterns.c.id == pattern_id)
        forgotten: ForgottenTexts | None = None
        with self._database.connect_for_writing() as connection:
            row = connection.execute(select(patterns.c.body, patterns.c.run_id).where(*conditions)).one_or_none()
            if row is not None:
                pattern = parse(SolutionPattern, row.body)
                scrubbed_runs = ScrubbedRuns(
                    connection, self._tenant, JsonScrubber([pattern.id], (pattern.summary, *pattern.subtasks))
                )
                scrubbed_runs.scrub_runs(scrubbed_runs.find_runs("patterns", [pattern.id], [row.run_id]))
                same_pattern = (pattern_vectors.c.tenant == self._tenant, pattern_vectors.c.pattern_id == pattern_id)
                connection.execute(delete(pattern_vectors).where(*same_pattern))
                connection.execute(delete(patterns).where(*conditions))
                forgotten = scrubbed_runs.forgotten
        sweep(self._database)
        return forgotten

    def _select_newest(self, model: str) -> Subquery:
        """Select the newest shown pattern of each goal and repo, with its vector by this model."""
        newest_first = (patterns.c.created.desc(), patterns.c.id.desc())
        order = func.row_number().over(partition_by=(patterns.c.repo, patterns.c.key), order_by=newest_first)
        same_pattern = (pattern_vectors.c.tenant == patterns.c.tenant) & (pattern_vectors.c.pattern_id == patterns.c.id)
        conditions = (patterns.c.tenant == self._tenant, patterns.c.state == CardState.shown.value)
        ranked = (
            select(patterns.c.id, patterns.c.repo, patterns.c.created, pattern_vectors.c.embedding, order.label("rank"))
            .join(pattern_vectors, same_pattern)
            .where(*conditions, pattern_vectors.c.model == model)
            .subquery("ranked")
        )
        columns = (ranked.c.id, ranked.c.repo, ranked.c.created, ranked.c.embedding)
        return select(*columns).where(ranked.c.rank == 1).subquery("newest")

    def _in_file(self, connection: Connection, query: _Wanted) -> list[_Hit]:
        likeness = build_product(query.vector.place)
        hits = [
            _Hit(likeness(row.embedding), row.repo == query.repo, row.created, row.id)
            for row in connection.execute(select(self._select_newest(query.vector.model)))
        ]
        near_hits = [hit for hit in hits if hit.likeness >= query.min_likeness]
        near_hits.sort(key=lambda hit: (round(hit.likeness, HUNDREDTHS), *hit[1:]), reverse=True)
        return near_hits[: query.limit]

    def _on_server(self, connection: Connection, query: _Wanted) -> list[_Hit]:
        if self._extended is None:
            self._extended = is_extended(connection)
        newest = self._select_newest(query.vector.model)
        likeness = build_product_sql(newest.c.embedding, query.vector, extended=self._extended).label("likeness")
        same_repo = (newest.c.repo == query.repo).label("here")
        candidates = select(likeness, same_repo, newest.c.created, newest.c.id).subquery("placed")
        order = (
            func.round(cast(candidates.c.likeness, Numeric), HUNDREDTHS).desc(),
            candidates.c.here.desc(),
            candidates.c.created.desc(),
            candidates.c.id.desc(),
        )
        statement = (
            select(candidates).where(candidates.c.likeness >= query.min_likeness).order_by(*order).limit(query.limit)
        )
        return [_Hit(*row) for row in connection.execute(statement)]

    async def _compute_missing_vectors(self, embedder: GoalEmbedder) -> None:
        """Compute missing vectors of this embedder. May be interrupted, and may run twice at once."""
        outdated = or_(patterns.c.embedded < embedder.name, patterns.c.embedded > embedder.name)
        conditions = (patterns.c.tenant == self._tenant, patterns.c.state == CardState.shown.value)
        waiting = select(patterns.c.id, patterns.c.body).where(*conditions, outdated).limit(AT_ONCE)
        while True:
            with self._database.connect_for_reading() as connection:
                rows = connection.execute(waiting).all()
            if not rows:
                return
            places = await embedder.embed([parse(SolutionPattern, row.body).likeness for row in rows])
            self._place(embedder.name, [row.id for row in rows], places)

    def _place(self, model: str, names: Sequence[str], places: Sequence[Sequence[float]]) -> None:
        pack: Any = list if self._database.is_postgres else pack_vector
        rows = [
            {"tenant": self._tenant, "pattern_id": name, "model": model, "embedding": pack(place)}
            for name, place in zip(names, places, strict=True)
        ]
        conditions = (patterns.c.tenant == self._tenant, patterns.c.id == bindparam("done"))
        with self._database.connect_for_writing() as connection:
            connection.execute(_keep(self._database), rows)
            connection.execute(
                update(patterns).where(*conditions).values(embedded=model), [{"done": name} for name in names]
            )


def _keep(database: Database) -> Any:
    if database.is_postgres:
        # An array fits both kinds of columns and needs no text parsing.
        values = ":tenant, :pattern_id, :model, CAST(:embedding AS real[])"
        return text(f"INSERT INTO pattern_vectors VALUES ({values}) ON CONFLICT DO NOTHING")  # noqa: S608
    return sqlite.insert(pattern_vectors).on_conflict_do_nothing()
