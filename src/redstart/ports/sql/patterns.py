"""Patterns in SQL: an exact search by goal over all patterns of the tenant. `remember` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Numeric, Subquery, bindparam, cast, delete, func, or_, select, text, update
from sqlalchemy.dialects import sqlite

from redstart.core.learning import CardState
from redstart.core.pattern import RecalledPattern, SolutionPattern, goal_words
from redstart.ports.memory.port import ForgottenTexts, GoalEmbedder
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import JsonScrubber, ScrubbedRuns, sweep
from redstart.ports.sql.nearness import HUNDREDTHS, FailureVector, is_extended, packed, product, product_on_server
from redstart.ports.sql.schema import pattern_vectors, patterns

AT_ONCE = 200
"""How many patterns get their vectors in one transaction."""


class _Wanted(NamedTuple):
    of: FailureVector
    repo: str
    least: float
    limit: int


class _Hit(NamedTuple):
    likeness: float
    same_repo: bool
    created: float
    pattern_id: str


class SqlPatterns:
    """The patterns of the database's tenant.

    The first recall after a pattern was written computes its vector, and computes it anew for another embedder. Vectors
    of different models are never compared. Without an embedder no pattern is found.
    """

    def __init__(self, database: Database, embedder: GoalEmbedder | None = None) -> None:
        self._database, self._embedder, self._tenant = database, embedder, database.tenant
        self._extended: bool | None = None

    async def alike(self, goal: str, *, repo: str, limit: int) -> list[RecalledPattern]:
        """Find patterns with a similar goal; see `Memory.patterns`."""
        embedder = self._embedder
        if embedder is None or limit < 1:
            return []
        place = (await embedder.embed([goal_words(goal)]))[0]
        if not any(place):
            return []
        await self._catch_up(embedder)
        wanted = _Wanted(FailureVector(embedder.name, place), repo, embedder.near_goals, limit)
        find = self._on_server if self._database.is_postgres else self._in_file
        with self._database.reading() as connection:
            hits = find(connection, wanted)
            mine = (patterns.c.tenant == self._tenant, patterns.c.id.in_([hit.pattern_id for hit in hits]))
            bodies = {
                row.id: row.body for row in connection.execute(select(patterns.c.id, patterns.c.body).where(*mine))
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
        mine = (patterns.c.tenant == self._tenant, patterns.c.id == pattern_id)
        gone: ForgottenTexts | None = None
        with self._database.writing() as connection:
            row = connection.execute(select(patterns.c.body, patterns.c.run_id).where(*mine)).one_or_none()
            if row is not None:
                left = parse(SolutionPattern, row.body)
                scrubbed = ScrubbedRuns(
                    connection, self._tenant, JsonScrubber([left.id], (left.summary, *left.subtasks))
                )
                scrubbed.out_of_runs(scrubbed.look("patterns", [left.id], [row.run_id]))
                of_it = (pattern_vectors.c.tenant == self._tenant, pattern_vectors.c.pattern_id == pattern_id)
                connection.execute(delete(pattern_vectors).where(*of_it))
                connection.execute(delete(patterns).where(*mine))
                gone = scrubbed.forgotten
        sweep(self._database)
        return gone

    def _newest(self, model: str) -> Subquery:
        """Select the newest shown pattern of each goal and repo, with its vector by this model."""
        newer = (patterns.c.created.desc(), patterns.c.id.desc())
        order = func.row_number().over(partition_by=(patterns.c.repo, patterns.c.key), order_by=newer)
        same = (pattern_vectors.c.tenant == patterns.c.tenant) & (pattern_vectors.c.pattern_id == patterns.c.id)
        mine = (patterns.c.tenant == self._tenant, patterns.c.state == CardState.shown.value)
        ranked = (
            select(patterns.c.id, patterns.c.repo, patterns.c.created, pattern_vectors.c.embedding, order.label("rank"))
            .join(pattern_vectors, same)
            .where(*mine, pattern_vectors.c.model == model)
            .subquery("ranked")
        )
        shown = (ranked.c.id, ranked.c.repo, ranked.c.created, ranked.c.embedding)
        return select(*shown).where(ranked.c.rank == 1).subquery("newest")

    def _in_file(self, connection: Connection, wanted: _Wanted) -> list[_Hit]:
        likeness = product(wanted.of.place)
        found = [
            _Hit(likeness(row.embedding), row.repo == wanted.repo, row.created, row.id)
            for row in connection.execute(select(self._newest(wanted.of.model)))
        ]
        near = [hit for hit in found if hit.likeness >= wanted.least]
        near.sort(key=lambda hit: (round(hit.likeness, HUNDREDTHS), *hit[1:]), reverse=True)
        return near[: wanted.limit]

    def _on_server(self, connection: Connection, wanted: _Wanted) -> list[_Hit]:
        if self._extended is None:
            self._extended = is_extended(connection)
        newest = self._newest(wanted.of.model)
        likeness = product_on_server(newest.c.embedding, wanted.of, extended=self._extended).label("likeness")
        here = (newest.c.repo == wanted.repo).label("here")
        placed = select(likeness, here, newest.c.created, newest.c.id).subquery("placed")
        order = (
            func.round(cast(placed.c.likeness, Numeric), HUNDREDTHS).desc(),
            placed.c.here.desc(),
            placed.c.created.desc(),
            placed.c.id.desc(),
        )
        near = select(placed).where(placed.c.likeness >= wanted.least).order_by(*order).limit(wanted.limit)
        return [_Hit(*row) for row in connection.execute(near)]

    async def _catch_up(self, embedder: GoalEmbedder) -> None:
        """Compute missing vectors of this embedder. May be interrupted, and may run twice at once."""
        other = or_(patterns.c.embedded < embedder.name, patterns.c.embedded > embedder.name)
        mine = (patterns.c.tenant == self._tenant, patterns.c.state == CardState.shown.value)
        waiting = select(patterns.c.id, patterns.c.body).where(*mine, other).limit(AT_ONCE)
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(waiting).all()
            if not rows:
                return
            places = await embedder.embed([parse(SolutionPattern, row.body).likeness for row in rows])
            self._place(embedder.name, [row.id for row in rows], places)

    def _place(self, model: str, names: Sequence[str], places: Sequence[Sequence[float]]) -> None:
        pack: Any = list if self._database.is_postgres else packed
        rows = [
            {"tenant": self._tenant, "pattern_id": name, "model": model, "embedding": pack(place)}
            for name, place in zip(names, places, strict=True)
        ]
        same = (patterns.c.tenant == self._tenant, patterns.c.id == bindparam("done"))
        with self._database.writing() as connection:
            connection.execute(_keep(self._database), rows)
            connection.execute(update(patterns).where(*same).values(embedded=model), [{"done": name} for name in names])


def _keep(database: Database) -> Any:
    if database.is_postgres:
        # An array fits both kinds of columns and needs no text parsing.
        values = ":tenant, :pattern_id, :model, CAST(:embedding AS real[])"
        return text(f"INSERT INTO pattern_vectors VALUES ({values}) ON CONFLICT DO NOTHING")  # noqa: S608
    return sqlite.insert(pattern_vectors).on_conflict_do_nothing()
