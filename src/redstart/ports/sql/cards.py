"""Fix cards for people: list all of them, shown or quarantined, decide on them, and forget one permanently."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, select, update

from redstart.core.learning import CardState, EdgeKind, FixCard, RecalledCard
from redstart.ports.memory.port import Approval, ForgottenTexts, KeptCard, MemoryCounts
from redstart.ports.sql.engine import Database, parse
from redstart.ports.sql.forget import JsonScrubber, ScrubbedRuns, sweep
from redstart.ports.sql.schema import cards, edges, failures, journal, vectors


class _Recall(BaseModel):
    """The journaled result of a recall that asked a model. Any other recall is a list of cards."""

    found: list[RecalledCard]


_RECALL_ADAPTER: TypeAdapter[list[RecalledCard] | _Recall] = TypeAdapter(list[RecalledCard] | _Recall)
_AT_ONCE = 100
KIND = "recall"
"""The kind of the journaled calls that give cards to runs."""


class SqlCards:
    """All cards of the database's tenant, for people to view and decide on."""

    def __init__(self, database: Database) -> None:
        self._database, self._tenant = database, database.tenant

    async def list_cards(self, *, repo: str | None = None, limit: int = 50) -> list[KeptCard]:
        """List the cards, newest first."""
        query = select(cards).where(cards.c.tenant == self._tenant)
        if repo is not None:
            query = query.where(cards.c.repo == repo)
        with self._database.connect_for_reading() as connection:
            rows = connection.execute(query.order_by(cards.c.created.desc(), cards.c.id.desc()).limit(limit)).all()
        return [_parse_card(row) for row in rows]

    async def get_card(self, card_id: str) -> KeptCard | None:
        with self._database.connect_for_reading() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
        return None if row is None else _parse_card(row)

    async def find_ids(self, prefix: str, limit: int) -> list[str]:
        """List the IDs that start with `prefix`, at most `limit`."""
        # Not LIKE: its case sensitivity depends on the database.
        alike = (cards.c.id >= prefix, cards.c.id < prefix + chr(sys.maxunicode))
        query = select(cards.c.id).where(cards.c.tenant == self._tenant, *alike).order_by(cards.c.id).limit(limit)
        with self._database.connect_for_reading() as connection:
            return list(connection.execute(query).scalars())

    async def list_families(self) -> dict[str, str]:
        """Return the failure family of every card, by the card's ID."""
        query = select(cards.c.id, cards.c.family).where(cards.c.tenant == self._tenant)
        with self._database.connect_for_reading() as connection:
            return {row.id: row.family for row in connection.execute(query)}

    async def put(self, card_id: str, state: CardState, approval: Approval | None = None) -> bool:
        """Show a card again or quarantine it. Returns whether the card exists.

        The approval is stored in the card and replaces an earlier one.
        """
        with self._database.connect_for_writing() as connection:
            body = connection.execute(select(cards.c.body).where(self._mine(card_id))).scalar()
            if body is None:
                return False
            card = parse(FixCard, body)
            origin = {name: value for name, value in card.provenance.items() if name not in Approval._fields}
            if approval is not None:
                origin |= {"approved_by": approval.approved_by, "approved_at": approval.approved_at}
            new = card.model_copy(update={"provenance": origin}).model_dump_json()
            connection.execute(update(cards).where(self._mine(card_id)).values(state=state.value, body=new))
        return True

    async def count_memory(self) -> MemoryCounts:
        condition, count = cards.c.tenant == self._tenant, func.count()
        states = select(cards.c.state, count).where(condition).group_by(cards.c.state).order_by(cards.c.state)
        repos = select(cards.c.repo, count).where(condition).group_by(cards.c.repo).order_by(count.desc(), cards.c.repo)
        failed = select(count).select_from(failures).where(failures.c.tenant == self._tenant)
        with self._database.connect_for_snapshot() as connection:
            return MemoryCounts(
                {row[0]: row[1] for row in connection.execute(states)},
                {row[0]: row[1] for row in connection.execute(repos)},
                connection.execute(failed).scalar_one(),
                self._find_recalls(connection),
            )

    def _find_recalls(self, connection: Connection) -> dict[str, frozenset[str]]:
        conditions = (journal.c.tenant == self._tenant, journal.c.kind == KIND, journal.c.result != "[]")
        query = select(journal.c.run_id, journal.c.result).where(*conditions)
        runs_by_card: dict[str, set[str]] = {}
        for run_id, result in connection.execution_options(yield_per=_AT_ONCE).execute(query):
            recall = _RECALL_ADAPTER.validate_json(result)
            for item in recall if isinstance(recall, list) else recall.found:
                runs_by_card.setdefault(item.card.id, set()).add(run_id)
        return {card_id: frozenset(run_ids) for card_id, run_ids in runs_by_card.items()}

    async def forget(self, card_id: str) -> ForgottenTexts | None:
        """Remove a card, and its texts from everything that runs stored in the database. Returns None if it is unknown.

        Even then, remains of earlier cards are swept from the file. A run that made or saw the card can be viewed as
        before, but not replayed. Raises `StoreError`, with nothing removed, while such a run has not ended, because it
        would write the texts again. Also raises `StoreError` if another process prevents the sweep: then call it again.
        A server's own log and backups are the responsibility of its operator.
        """
        with self._database.connect_for_writing() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
            forgotten = None if row is None else self._forget(connection, parse(FixCard, row.body), row.run_id)
        sweep(self._database)
        return forgotten

    async def preview_forget(self, card_id: str) -> ForgottenTexts | None:
        """Return what `forget` would return, without removing anything. Raises as `forget` does."""
        with self._database.connect_for_snapshot() as connection:
            row = connection.execute(select(cards).where(self._mine(card_id))).one_or_none()
            if row is None:
                return None
            scrubbed_runs = self._make_scrubbed_runs(connection, parse(FixCard, row.body))
            scrubbed_runs.find_runs(KIND, [card_id], [row.run_id])
        return scrubbed_runs.forgotten

    def _make_scrubbed_runs(self, connection: Connection, card: FixCard) -> ScrubbedRuns:
        texts = (card.summary, card.root_cause, card.fix, *card.debug_steps)
        return ScrubbedRuns(connection, self._tenant, JsonScrubber([card.id], texts))

    def _forget(self, connection: Connection, card: FixCard, run_id: str) -> ForgottenTexts:
        scrubbed_runs = self._make_scrubbed_runs(connection, card)
        scrubbed_runs.scrub_runs(scrubbed_runs.find_runs(KIND, [card.id], [run_id]))
        tied = (edges.c.tenant == self._tenant, edges.c.kind == EdgeKind.has_fix_card.value, edges.c.target == card.id)
        connection.execute(delete(edges).where(*tied))
        connection.execute(delete(vectors).where(vectors.c.tenant == self._tenant, vectors.c.card_id == card.id))
        connection.execute(delete(cards).where(self._mine(card.id)))
        return scrubbed_runs.forgotten

    def _mine(self, card_id: str) -> ColumnElement[bool]:
        return and_(cards.c.tenant == self._tenant, cards.c.id == card_id)


def _parse_card(row: Row[Any]) -> KeptCard:
    moment = datetime.fromtimestamp(row.created, UTC)
    return KeptCard(parse(FixCard, row.body), CardState(row.state), row.repo, moment)
