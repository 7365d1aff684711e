"""Recall of cards, failures and patterns in SQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, or_, select, text, update
from sqlalchemy.dialects import sqlite

from redstart.core.errors import BudgetExceeded, ConfigError, ModelError
from redstart.core.failures import FailureQuery, RecalledFailure, choose_failures
from redstart.core.learning import CardState, FailureRecord, FixCard, RecalledCard, Signature, build_similarity_text
from redstart.core.pattern import RecalledPattern
from redstart.ports.memory.port import Embedder, ForgottenTexts, GoalEmbedder, KeptFailure, Meter
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import JsonScrubber, ScrubbedRuns, sweep
from redstart.ports.sql.patterns import SqlPatterns
from redstart.ports.sql.schema import cards, failures, vectors
from redstart.ports.sql.similarity import (
    CardQuery,
    FailureVector,
    FileSearch,
    ServerSearch,
    SimilaritySearch,
    is_extended,
    pack_vector,
)

LOOKED_AT = 200
"""The most candidates that are examined, newest first."""
KIND = "failures"
"""The kind of the journaled calls that give failures to runs."""


class SqlFailures:
    """The failed attempts of the database's tenant."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def find_similar(self, query: FailureQuery, *, repo: str, limit: int) -> list[RecalledFailure]:
        """Find failed attempts at these failures; see `Memory.failures`."""
        if not query.signatures or limit < 1:
            return []
        keys = [signature.key for signature in query.signatures]
        families = [signature.family for signature in query.signatures]
        condition = or_(failures.c.key.in_(keys), failures.c.family.in_(families) & (failures.c.repo == repo))
        candidates = self._list_newest(condition, failures.c.run_id.not_in(query.without), limit=LOOKED_AT)
        return choose_failures([(item.record, item.repo) for item in candidates], query, repo=repo, limit=limit)

    async def list_newest(self, limit: int) -> list[KeptFailure]:
        """List the failures, newest first."""
        return self._list_newest(limit=limit)

    async def preview_forget(self, failure_id: str) -> ForgottenTexts | None:
        """Return what `forget` would return, without removing anything."""
        with self._database.connect_for_snapshot() as connection:
            row = connection.execute(select(failures).where(*self._mine(failure_id))).one_or_none()
            if row is None:
                return None
            scrubbed_runs = ScrubbedRuns(connection, self._tenant, _scrub(parse(FailureRecord, row.body)))
            scrubbed_runs.find_runs(KIND, [failure_id], [row.run_id])
        return scrubbed_runs.forgotten

    async def forget(self, failure_id: str) -> ForgottenTexts | None:
        """Remove a failure, and its texts from everything that runs stored; see `SqlCards.forget`."""
        forgotten: ForgottenTexts | None = None
        with self._database.connect_for_writing() as connection:
            row = connection.execute(select(failures).where(*self._mine(failure_id))).one_or_none()
            if row is not None:
                scrubbed_runs = ScrubbedRuns(connection, self._tenant, _scrub(parse(FailureRecord, row.body)))
                scrubbed_runs.scrub_runs(scrubbed_runs.find_runs(KIND, [failure_id], [row.run_id]))
                connection.execute(delete(failures).where(*self._mine(failure_id)))
                forgotten = scrubbed_runs.forgotten
        sweep(self._database)
        return forgotten

    def _list_newest(self, *conditions: ColumnElement[bool], limit: int) -> list[KeptFailure]:
        selection = select(failures).where(failures.c.tenant == self._tenant, *conditions)
        query = selection.order_by(failures.c.created.desc(), failures.c.id.desc()).limit(limit)
        with self._database.connect_for_reading() as connection:
            return [_parse_failure(row) for row in connection.execute(query)]

    def _mine(self, failure_id: str) -> tuple[ColumnElement[bool], ...]:
        return (failures.c.tenant == self._tenant, failures.c.id == failure_id)


def _parse_failure(row: Row[Any]) -> KeptFailure:
    return KeptFailure(parse(FailureRecord, row.body), row.repo, datetime.fromtimestamp(row.created, UTC))


def _scrub(record: FailureRecord) -> JsonScrubber:
    texts = (record.tried, record.what_failed, record.root_cause, record.try_next, record.change)
    return JsonScrubber([record.id], [text for text in texts if text])


AT_ONCE = 200
"""How many cards get their vectors in one transaction, or, with a remote model, in one recall."""
SPARE = 16
"""Hits requested in addition to the limit: some may already be found, or quarantined by now."""
_SHOWN_STATE = CardState.shown.value


class _Candidate(NamedTuple):
    """A card that may be shown, and its repo."""

    card: FixCard
    repo: str


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

    def with_meter(self, meter: Meter) -> SqlMemory:
        embedder = self._embedder.with_meter(meter) if self._embedder else None
        return SqlMemory(self._database, embedder, meter, goals=self._goals)

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        if limit < 1 or tenant != self._database.tenant:
            return []
        vector = await self._embed_failure(signature, repo)
        card_query = CardQuery(tenant, repo, signature.key, signature.family)
        with self._database.connect_for_reading() as connection:
            search = self._get_search(connection)
            akin = search.find_related(connection, card_query, vector, limit)
            candidates = self._load_cards(connection, [hit.card_id for hit in akin]) if akin else {}
            recalled = [
                RecalledCard(
                    card=candidates[hit.card_id].card,
                    score=1.0 if hit.has_same_signature else 0.5,
                    source="signature" if hit.has_same_signature else "family",
                )
                for hit in akin
                if hit.card_id in candidates
                and (hit.has_same_signature or self._may_help(signature, candidates[hit.card_id], hit.likeness, repo))
            ]
            if vector is not None and len(recalled) < limit:
                known, missing = {hit.card_id for hit in akin}, limit - len(recalled)
                recalled += self._find_similar(connection, search, vector, signature, card_query, missing, known)
        return recalled

    async def recall_patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        if tenant != self._database.tenant:
            return []
        return await self._patterns.find_similar(goal, repo=repo, limit=limit)

    async def recall_failures(
        self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3
    ) -> list[RecalledFailure]:
        return (
            [] if tenant != self._database.tenant else await self._failures.find_similar(query, repo=repo, limit=limit)
        )

    async def _embed_failure(self, signature: Signature, repo: str) -> FailureVector | None:
        if self._embedder is None:
            return None
        place: Sequence[float] = ()
        try:
            # This comes first: the embedder knows its own name only after its first answer.
            place = (await self._embedder.embed([build_similarity_text(signature)]))[0]
            if any(place):
                await self._compute_missing_vectors(self._embedder, repo)
        except (ModelError, BudgetExceeded, ConfigError) as error:
            if self._meter:
                self._meter.lacks(str(error))
        return FailureVector(self._embedder.name, place) if any(place) else None

    def _find_similar(
        self,
        connection: Connection,
        search: SimilaritySearch,
        vector: FailureVector,
        signature: Signature,
        card_query: CardQuery,
        missing: int,
        known: Collection[str],
    ) -> list[RecalledCard]:
        """Find as many cards as are missing by their text: those of the repo, then others of the tenant."""
        recalled: list[RecalledCard] = []
        repo, min_likeness = card_query.repo, self._embedder.near if self._embedder else 1.0
        tenant_condition = vectors.c.tenant == card_query.tenant
        for scope in (vectors.c.repo == repo, vectors.c.repo != repo):
            if len(recalled) >= missing:
                break
            hits = search.find_nearest(connection, tenant_condition & scope, vector, missing + len(known) + SPARE)
            similar_hits = [hit for hit in hits if hit.likeness >= min_likeness and hit.card_id not in known]
            candidates = self._load_cards(connection, [hit.card_id for hit in similar_hits]) if similar_hits else {}
            recalled += [
                RecalledCard(card=candidates[hit.card_id].card, score=round(0.5 * hit.likeness, 4), source="likeness")
                for hit in similar_hits
                if hit.card_id in candidates and self._may_help(signature, candidates[hit.card_id], hit.likeness, repo)
            ]
        return recalled[:missing]

    def _may_help(self, signature: Signature, candidate: _Candidate, likeness: float, repo: str) -> bool:
        """Return whether the card of another bug may be shown: one of another repo must meet a higher standard."""
        if candidate.repo == repo:
            return True
        card_signature = candidate.card.signature
        is_plain = signature.is_plain_assertion or (card_signature is not None and card_signature.is_plain_assertion)
        return self._embedder is not None and not is_plain and likeness >= self._embedder.near_elsewhere

    def _load_cards(self, connection: Connection, names: list[str]) -> dict[str, _Candidate]:
        """Load the cards that may be shown."""
        conditions = (cards.c.tenant == self._database.tenant, cards.c.id.in_(names), cards.c.state == _SHOWN_STATE)
        rows = connection.execute(select(cards.c.id, cards.c.repo, cards.c.body).where(*conditions))
        return {row.id: _Candidate(parse(FixCard, row.body), row.repo) for row in rows}

    async def _compute_missing_vectors(self, embedder: Embedder, repo: str) -> None:
        """Compute missing vectors of this embedder. May be interrupted, and may run twice at once.

        A remote model takes time and may cost money: a recall waits only for some cards, the repo's newest first.
        """
        model = embedder.name
        is_missing = or_(cards.c.embedded < model, cards.c.embedded > model)
        conditions: tuple[ColumnElement[bool], ...] = (
            cards.c.tenant == self._database.tenant,
            cards.c.state == _SHOWN_STATE,
        )
        waiting = select(cards.c.id, cards.c.repo, cards.c.body).where(*conditions, is_missing).limit(AT_ONCE)
        if embedder.remote:
            waiting = waiting.order_by((cards.c.repo == repo).desc(), cards.c.created.desc())
        while True:
            with self._database.connect_for_reading() as connection:
                rows = connection.execute(waiting).all()
                had = self._find_embedded(connection, model, [row.id for row in rows])
            if not rows:
                return
            new = [row for row in rows if row.id not in had]
            places = await embedder.embed([parse(FixCard, row.body).likeness for row in new])
            new_vectors = [(row.id, row.repo, place) for row, place in zip(new, places, strict=True)]
            self._place(model, new_vectors, [row.id for row in rows])
            if embedder.remote and new:
                return

    def _find_embedded(self, connection: Connection, model: str, names: list[str]) -> set[str]:
        """Return which of these cards already have a vector of this model."""
        conditions = (vectors.c.tenant == self._database.tenant, vectors.c.model == model, vectors.c.card_id.in_(names))
        return set(connection.execute(select(vectors.c.card_id).where(*conditions)).scalars()) if names else set()

    def _place(self, model: str, new_vectors: Sequence[tuple[str, str, Sequence[float]]], card_ids: list[str]) -> None:
        tenant = self._database.tenant
        pack: Any = list if self._database.is_postgres else pack_vector
        rows = [
            {"tenant": tenant, "card_id": card_id, "model": model, "repo": repo, "embedding": pack(place)}
            for card_id, repo, place in new_vectors
        ]
        statement = (
            update(cards).where(cards.c.tenant == tenant, cards.c.id == bindparam("done")).values(embedded=model)
        )
        with self._database.connect_for_writing() as connection:
            if rows:
                connection.execute(self._keep, rows)
            connection.execute(statement, [{"done": card_id} for card_id in card_ids])

    def _get_search(self, connection: Connection) -> SimilaritySearch:
        if self._nearness is None:
            self._nearness = ServerSearch(extended=is_extended(connection))
        return self._nearness


def _keep(database: Database) -> Any:
    if database.is_postgres:
        # An array fits both kinds of columns and needs no text parsing.
        values = ":tenant, :card_id, :model, :repo, CAST(:embedding AS real[])"
        return text(f"INSERT INTO vectors VALUES ({values}) ON CONFLICT DO NOTHING")  # noqa: S608
    return sqlite.insert(vectors).on_conflict_do_nothing()
