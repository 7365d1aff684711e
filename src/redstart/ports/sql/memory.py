"""Recall of cards, failures and patterns in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, or_, select, text, update
from sqlalchemy.dialects import sqlite

from redstart.core.errors import BudgetExceeded, ConfigError, ModelError
from redstart.core.failures import FailureQuery, RecalledFailure, choose_failures
from redstart.core.learning import CardState, FailureRecord, FixCard, RecalledCard, Signature, likeness
from redstart.core.pattern import RecalledPattern
from redstart.ports.memory.port import Embedder, ForgottenTexts, GoalEmbedder, KeptFailure, Meter
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import JsonScrubber, ScrubbedRuns, sweep
from redstart.ports.sql.nearness import (
    CardQuery,
    FailureVector,
    FileSearch,
    ServerSearch,
    SimilaritySearch,
    is_extended,
    packed,
)
from redstart.ports.sql.patterns import SqlPatterns
from redstart.ports.sql.schema import cards, failures, vectors

LOOKED_AT = 200
"""The most candidates that are examined, newest first."""
KIND = "failures"
"""The kind of the journaled calls that give failures to runs."""


class SqlFailures:
    """The failed attempts of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def of(self, query: FailureQuery, *, repo: str, limit: int) -> list[RecalledFailure]:
        """Find failed attempts at these failures; see `Memory.failures`."""
        if not query.signatures or limit < 1:
            return []
        keys = [signature.key for signature in query.signatures]
        families = [signature.family for signature in query.signatures]
        fits = or_(failures.c.key.in_(keys), failures.c.family.in_(families) & (failures.c.repo == repo))
        kept = self._newest(fits, failures.c.run_id.not_in(query.without), limit=LOOKED_AT)
        return choose_failures([(item.record, item.repo) for item in kept], query, repo=repo, limit=limit)

    async def newest(self, limit: int) -> list[KeptFailure]:
        """List the failures, newest first."""
        return self._newest(limit=limit)

    async def told(self, failure_id: str) -> ForgottenTexts | None:
        """Return what `forget` would return, without removing anything."""
        with self._database.steady() as connection:
            row = connection.execute(select(failures).where(*self._mine(failure_id))).one_or_none()
            if row is None:
                return None
            scrubbed = ScrubbedRuns(connection, self._tenant, _scrub(parse(FailureRecord, row.body)))
            scrubbed.look(KIND, [failure_id], [row.run_id])
        return scrubbed.forgotten

    async def forget(self, failure_id: str) -> ForgottenTexts | None:
        """Remove a failure, and its texts from everything that runs stored; see `SqlCards.forget`."""
        gone: ForgottenTexts | None = None
        with self._database.writing() as connection:
            row = connection.execute(select(failures).where(*self._mine(failure_id))).one_or_none()
            if row is not None:
                scrubbed = ScrubbedRuns(connection, self._tenant, _scrub(parse(FailureRecord, row.body)))
                scrubbed.out_of_runs(scrubbed.look(KIND, [failure_id], [row.run_id]))
                connection.execute(delete(failures).where(*self._mine(failure_id)))
                gone = scrubbed.forgotten
        sweep(self._database)
        return gone

    def _newest(self, *conditions: ColumnElement[bool], limit: int) -> list[KeptFailure]:
        mine = select(failures).where(failures.c.tenant == self._tenant, *conditions)
        query = mine.order_by(failures.c.created.desc(), failures.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            return [_kept(row) for row in connection.execute(query)]

    def _mine(self, failure_id: str) -> tuple[ColumnElement[bool], ...]:
        return (failures.c.tenant == self._tenant, failures.c.id == failure_id)


def _kept(row: Row[Any]) -> KeptFailure:
    return KeptFailure(parse(FailureRecord, row.body), row.repo, datetime.fromtimestamp(row.created, UTC))


def _scrub(record: FailureRecord) -> JsonScrubber:
    words = (record.tried, record.what_failed, record.root_cause, record.try_next, record.change)
    return JsonScrubber([record.id], [text for text in words if text])


AT_ONCE = 200
"""How many cards get their vectors in one transaction, or, with a remote model, in one recall."""
SPARE = 16
"""Hits requested in addition to the limit: some may already be found, or quarantined by now."""
_SHOWN = CardState.shown.value


class SqlMemory:
    """The cards of the database's tenant. Without an embedder no card is found by text similarity.

    The first recall after a card was written computes and stores its vector. A card with a vector of another embedder
    gets a new one, unless it already has one of this embedder. The search by signature covers all cards of the tenant;
    the search by text covers those of the repo and, if these are too few, all others of the tenant.

    If the embedder fails, the recall continues with the cards that already have vectors. Without a vector of the
    failure it uses only signature and family. The meter is informed.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None = None,
        meter: Meter | None = None,
        *,
        goals: GoalEmbedder | None = None,
    ) -> None:
        """Set up the memory. `goals` compares goals, which are few and short. Default: the embedder, if suitable."""
        self._database, self._embedder, self._meter = database, embedder, meter
        self._goals = goals or (embedder if isinstance(embedder, GoalEmbedder) else None)
        self._nearness: SimilaritySearch | None = None if database.is_postgres else FileSearch()
        self._keep = _keep(database)
        self._patterns = SqlPatterns(database, self._goals)
        self._failures = SqlFailures(database)

    @property
    def asks(self) -> str:
        return self._embedder.name if self._embedder and self._embedder.remote else ""

    def under(self, meter: Meter) -> SqlMemory:
        embedder = self._embedder.under(meter) if self._embedder else None
        return SqlMemory(self._database, embedder, meter, goals=self._goals)

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        if limit < 1 or tenant != self._database.tenant:
            return []
        of = await self._where(signature, repo)
        wanted = CardQuery(tenant, repo, signature.key, signature.family)
        with self._database.reading() as connection:
            near = self._near(connection)
            akin = near.akin(connection, wanted, of, limit)
            found = {hit.card_id: (1.0, "signature") if hit.same else (0.5, "family") for hit in akin}
            bodies = self._bodies(connection, list(found)) if found else {}
            if of is not None and len(found) < limit:
                self._add_alike(connection, near, of, wanted, limit, found, bodies)
        return [
            RecalledCard(card=parse(FixCard, bodies[card_id]), score=round(score, 4), source=source)
            for card_id, (score, source) in found.items()
            if card_id in bodies
        ][:limit]

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        if tenant != self._database.tenant:
            return []
        return await self._patterns.alike(goal, repo=repo, limit=limit)

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        return [] if tenant != self._database.tenant else await self._failures.of(query, repo=repo, limit=limit)

    async def _where(self, signature: Signature, repo: str) -> FailureVector | None:
        if self._embedder is None:
            return None
        place: Sequence[float] = ()
        try:
            # This comes first: the embedder knows its own name only after its first answer.
            place = (await self._embedder.embed([likeness(signature)]))[0]
            if any(place):
                await self._catch_up(self._embedder, repo)
        except (ModelError, BudgetExceeded, ConfigError) as error:
            if self._meter:
                self._meter.lacks(str(error))
        return FailureVector(self._embedder.name, place) if any(place) else None

    def _add_alike(
        self,
        connection: Connection,
        near: SimilaritySearch,
        of: FailureVector,
        wanted: CardQuery,
        limit: int,
        found: dict[str, tuple[float, str]],
        bodies: dict[str, str],
    ) -> None:
        """Add cards with similar text: those of the repo and, if they do not suffice, others of the tenant."""
        least = self._embedder.near if self._embedder else 1.0
        mine = vectors.c.tenant == wanted.tenant
        for scope in (vectors.c.repo == wanted.repo, vectors.c.repo != wanted.repo):
            if len(found) >= limit:
                return
            hits = near.nearest(connection, mine & scope, of, limit + len(found) + SPARE)
            alike = [hit for hit in hits if hit.likeness >= least and hit.card_id not in found]
            shown = self._bodies(connection, [hit.card_id for hit in alike]) if alike else {}
            bodies |= shown
            found |= {hit.card_id: (0.5 * hit.likeness, "likeness") for hit in alike if hit.card_id in shown}

    def _bodies(self, connection: Connection, names: list[str]) -> dict[str, str]:
        """Load the bodies of the cards that may be shown."""
        mine = (cards.c.tenant == self._database.tenant, cards.c.id.in_(names), cards.c.state == _SHOWN)
        return {row.id: row.body for row in connection.execute(select(cards.c.id, cards.c.body).where(*mine))}

    async def _catch_up(self, embedder: Embedder, repo: str) -> None:
        """Compute missing vectors of this embedder. May be interrupted, and may run twice at once.

        A remote model takes time and may cost money: a recall waits only for some cards, the repo's newest first.
        """
        model = embedder.name
        other = or_(cards.c.embedded < model, cards.c.embedded > model)
        mine: tuple[ColumnElement[bool], ...] = (cards.c.tenant == self._database.tenant, cards.c.state == _SHOWN)
        waiting = select(cards.c.id, cards.c.repo, cards.c.body).where(*mine, other).limit(AT_ONCE)
        if embedder.remote:
            waiting = waiting.order_by((cards.c.repo == repo).desc(), cards.c.created.desc())
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(waiting).all()
                had = self._placed(connection, model, [row.id for row in rows])
            if not rows:
                return
            new = [row for row in rows if row.id not in had]
            places = await embedder.embed([parse(FixCard, row.body).likeness for row in new])
            fresh = [(row.id, row.repo, place) for row, place in zip(new, places, strict=True)]
            self._place(model, fresh, [row.id for row in rows])
            if embedder.remote and new:
                return

    def _placed(self, connection: Connection, model: str, names: list[str]) -> set[str]:
        """Return which of these cards already have a vector of this model."""
        mine = (vectors.c.tenant == self._database.tenant, vectors.c.model == model, vectors.c.card_id.in_(names))
        return set(connection.execute(select(vectors.c.card_id).where(*mine)).scalars()) if names else set()

    def _place(self, model: str, fresh: Sequence[tuple[str, str, Sequence[float]]], placed: list[str]) -> None:
        tenant = self._database.tenant
        pack: Any = list if self._database.is_postgres else packed
        rows = [
            {"tenant": tenant, "card_id": card_id, "model": model, "repo": repo, "embedding": pack(place)}
            for card_id, repo, place in fresh
        ]
        done = update(cards).where(cards.c.tenant == tenant, cards.c.id == bindparam("done")).values(embedded=model)
        with self._database.writing() as connection:
            if rows:
                connection.execute(self._keep, rows)
            connection.execute(done, [{"done": card_id} for card_id in placed])

    def _near(self, connection: Connection) -> SimilaritySearch:
        if self._nearness is None:
            self._nearness = ServerSearch(extended=is_extended(connection))
        return self._nearness


def _keep(database: Database) -> Any:
    if database.is_postgres:
        # An array fits both kinds of columns and needs no text parsing.
        values = ":tenant, :card_id, :model, :repo, CAST(:embedding AS real[])"
        return text(f"INSERT INTO vectors VALUES ({values}) ON CONFLICT DO NOTHING")  # noqa: S608
    return sqlite.insert(vectors).on_conflict_do_nothing()
