"""The tokens that a recall spends on embeddings count in its run, and gaps are reported; both come from the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.app.settings import Settings
from redstart.app.show import summarize_spending
from redstart.app.wire import AppContext
from redstart.core.events import Event, Phase
from redstart.core.run import Limits, Result, RunState, Step
from redstart.engines.inline import run_inline
from redstart.engines.recall import read_metered_recall
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.evals.runner import WithholdingMemory
from redstart.ports.model.embedding import ApiEmbedder, EmbeddingOptions
from redstart.ports.model.endpoints import resolve_address
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock
from support import rig as play
from support.rig import Kept, Rig, make_rig
from support.server import Reply, Request, ScriptedServer

pytestmark = pytest.mark.slow

NAME = "openai:text-embedding-3-small"


class Desk:
    def __init__(self, rig: Rig, server: ScriptedServer, database: Database) -> None:
        self.rig, self.server, self.database = rig, server, database

    def run(self, *, limits: Limits | None = None, until: Step | None = None) -> RunState:
        self.rig.with_model([play.RIGHT, play.CARD])
        return asyncio.run(self._run(limits, until))

    async def _run(self, limits: Limits | None, until: Step | None) -> RunState:
        run_id = await self.rig.begin(limits=limits)
        store = self.rig.adapters.store
        return (await drive(self.rig.adapters, await store.claim(run_id), run_inline, until)).state

    @property
    def counted(self) -> int:
        return sum(sum(request.counted) for request in self.server.requests)

    def lacks(self, state: RunState) -> list[object]:
        events: list[Event] = asyncio.run(self.rig.adapters.store.list_events(state.run_id))
        return [
            event.data["recall_lacks"] for event in events if event.phase is Phase.note and "recall_lacks" in event.data
        ]


@pytest.fixture
def spoiled() -> list[Reply]:
    """Replies that the embedding model gives instead of embeddings."""
    return []


@pytest.fixture
def desk(tmp_path: Path, spoiled: list[Reply]) -> Iterator[Desk]:
    def answer(request: Request) -> Reply:
        del request
        return spoiled[0] if spoiled else Reply()

    with Database.open(tmp_path / "store.db") as database, ScriptedServer(answer) as server:

        def reach() -> object:
            return resolve_address(NAME, base_url=server.openai_url, api_key=None)

        embedder = ApiEmbedder(reach, NAME, EmbeddingOptions(deadline=120.0))  # pyright: ignore[reportArgumentType]
        stores = Kept(
            SqlStore(database, Clock()), SqlJournal(database), SqlMemory(database, embedder), SqlLessonStore(database)
        )
        rig = make_rig(tmp_path / "snapshots", lambda: stores)
        yield Desk(rig, server, database)
        rig.trees.close()


def test_embedding_tokens_count_in_the_spend_of_the_run(desk: Desk) -> None:
    first_state = desk.run()
    assert first_state.result is Result.verified
    first_counted, plain_tokens = desk.counted, first_state.spend.tokens - desk.counted
    second_state = desk.run()
    used = desk.counted - first_counted
    assert used > first_counted > 0, "now there is a card that needs an embedding"
    assert second_state.spend.usd == pytest.approx(used * 0.02 / 1_000_000)
    assert second_state.spend.calls == first_state.spend.calls == 3
    assert second_state.spend.tokens >= plain_tokens + used
    records = asyncio.run(desk.rig.adapters.journal.list_records(second_state.run_id))
    (recall_spend,) = [
        spend for record in records if record.kind == "recall" and (spend := read_metered_recall(record))
    ]
    assert recall_spend.usage is not None
    assert recall_spend.usage.tokens == used
    assert recall_spend.model.startswith(f"{NAME}/256~")
    assert [item.source for item in recall_spend.found] == ["signature"]
    assert desk.lacks(second_state) == []
    shares = asyncio.run(summarize_spending(AppContext(Settings(), desk.rig.adapters, desk.rig.trees), second_state))
    assert {share.model: share.input_tokens for share in shares}[recall_spend.model] == used


def test_run_continues_without_its_embedder_and_reports_it(desk: Desk, spoiled: list[Reply]) -> None:
    desk.run()
    spoiled.append(Reply(status=503, text="gone fishing"))
    second_state = desk.run()
    assert second_state.result is Result.verified
    assert second_state.now.plan is not None
    assert [item.source for item in second_state.now.plan.recalled] == ["signature"]
    (gap,) = desk.lacks(second_state)
    assert "gone fishing" in str(gap)
    assert second_state.spend.calls == 2, "a refused request costs nothing"


def test_resumed_or_replayed_run_repeats_no_embedding_request(desk: Desk, spoiled: list[Reply]) -> None:
    desk.run()
    paused_state = desk.run(until=Step.plan)
    request_count = len(desk.server.requests)
    spoiled.append(Reply(status=500))

    async def finish() -> RunState:
        return (
            await drive(desk.rig.adapters, await desk.rig.adapters.store.claim(paused_state.run_id), run_inline)
        ).state

    desk.rig.with_model([play.RIGHT, play.CARD])
    final_state = asyncio.run(finish())
    assert final_state.result is Result.verified
    assert len(desk.server.requests) == request_count
    assert asyncio.run(replay(desk.rig.adapters, final_state.run_id)).state == final_state
    assert len(desk.server.requests) == request_count


def test_embedding_beyond_the_token_limit_is_not_requested(desk: Desk) -> None:
    state = desk.run(limits=Limits(tokens=5), until=Step.plan)
    assert desk.server.requests == []
    (gap,) = desk.lacks(state)
    assert "tokens" in str(gap)


def test_acting_driver_leaves_embeddings_to_a_thinking_driver(desk: Desk) -> None:
    async def drive_acting() -> str:
        run_id = await desk.rig.begin()
        return (await drive(desk.rig.adapters, await desk.rig.adapters.store.claim(run_id), run_inline)).halt

    assert asyncio.run(drive_acting()) == "needs:think"
    assert desk.server.requests == []


def test_evaluation_that_withholds_cards_still_counts_their_cost(desk: Desk) -> None:
    desk.rig.adapters = replace(desk.rig.adapters, memory=WithholdingMemory(desk.rig.adapters.memory))
    state = desk.run()
    records = asyncio.run(desk.rig.adapters.journal.list_records(state.run_id))
    assert [read_metered_recall(record) is not None for record in records if record.kind == "recall"] == [True]


def test_card_holdings_include_recalls_by_embedding(desk: Desk) -> None:
    first_state, second_state = desk.run(), desk.run()
    card = f"{first_state.run_id}-{first_state.now.number}"
    assert asyncio.run(SqlCards(desk.database).count_memory()).recalls == {card: frozenset([second_state.run_id])}
