"""The tokens that a recall spends on embeddings count in its run, and gaps are reported; both come from the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.app.settings import Settings
from redstart.app.show import spending
from redstart.app.wire import AppContext
from redstart.core.events import Event, Phase
from redstart.core.run import Limits, Result, RunState, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.recall import spent_by
from redstart.engines.replay import replay
from redstart.evals.runner import WithholdingMemory
from redstart.ports.model.embedding import ApiEmbedder, EmbeddingOptions
from redstart.ports.model.endpoints import address
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
        return (await drive(self.rig.adapters, await store.claim(run_id), inline, until)).state

    @property
    def counted(self) -> int:
        return sum(sum(request.counted) for request in self.server.requests)

    def lacks(self, state: RunState) -> list[object]:
        events: list[Event] = asyncio.run(self.rig.adapters.store.events(state.run_id))
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
            return address(NAME, base_url=server.openai_url, api_key=None)

        embedder = ApiEmbedder(reach, NAME, EmbeddingOptions(deadline=120.0))  # pyright: ignore[reportArgumentType]
        kept = Kept(
            SqlStore(database, Clock()), SqlJournal(database), SqlMemory(database, embedder), SqlLessonStore(database)
        )
        rig = make_rig(tmp_path / "snapshots", lambda: kept)
        yield Desk(rig, server, database)
        rig.trees.close()


def test_tokens_of_places_count_in_the_spend_of_the_run(desk: Desk) -> None:
    first = desk.run()
    assert first.result is Result.verified
    before, plain = desk.counted, first.spend.tokens - desk.counted
    second = desk.run()
    used = desk.counted - before
    assert used > before > 0, "now there is a card that needs an embedding"
    assert second.spend.usd == pytest.approx(used * 0.02 / 1_000_000)
    assert second.spend.calls == first.spend.calls == 3
    assert second.spend.tokens >= plain + used
    records = asyncio.run(desk.rig.adapters.journal.records(second.run_id))
    (kept,) = [one for record in records if record.kind == "recall" and (one := spent_by(record))]
    assert kept.usage is not None
    assert kept.usage.tokens == used
    assert kept.model.startswith(f"{NAME}/256~")
    assert [item.source for item in kept.found] == ["signature"]
    assert desk.lacks(second) == []
    shares = asyncio.run(spending(AppContext(Settings(), desk.rig.adapters, desk.rig.trees), second))
    assert {share.model: share.input_tokens for share in shares}[kept.model] == used


def test_a_run_goes_on_without_its_embedder_and_says_so(desk: Desk, spoiled: list[Reply]) -> None:
    desk.run()
    spoiled.append(Reply(status=503, text="gone fishing"))
    second = desk.run()
    assert second.result is Result.verified
    assert second.now.plan is not None
    assert [item.source for item in second.now.plan.recalled] == ["signature"]
    (told,) = desk.lacks(second)
    assert "gone fishing" in str(told)
    assert second.spend.calls == 2, "a refused request costs nothing"


def test_a_run_that_is_resumed_or_replayed_asks_nobody_again(desk: Desk, spoiled: list[Reply]) -> None:
    desk.run()
    half = desk.run(until=Step.plan)
    asked = len(desk.server.requests)
    spoiled.append(Reply(status=500))

    async def finished() -> RunState:
        return (await drive(desk.rig.adapters, await desk.rig.adapters.store.claim(half.run_id), inline)).state

    desk.rig.with_model([play.RIGHT, play.CARD])
    done = asyncio.run(finished())
    assert done.result is Result.verified
    assert len(desk.server.requests) == asked
    assert asyncio.run(replay(desk.rig.adapters, done.run_id)).state == done
    assert len(desk.server.requests) == asked


def test_what_does_not_fit_under_the_cap_is_not_asked(desk: Desk) -> None:
    state = desk.run(limits=Limits(tokens=5), until=Step.plan)
    assert desk.server.requests == []
    (told,) = desk.lacks(state)
    assert "tokens" in str(told)


def test_a_driver_that_may_only_act_leaves_it_to_one_that_may_think(desk: Desk) -> None:
    async def acted() -> str:
        run_id = await desk.rig.begin()
        return (await drive(desk.rig.adapters, await desk.rig.adapters.store.claim(run_id), inline)).halt

    assert asyncio.run(acted()) == "needs:think"
    assert desk.server.requests == []


def test_an_evaluation_that_withholds_cards_counts_all_the_same(desk: Desk) -> None:
    desk.rig.adapters = replace(desk.rig.adapters, memory=WithholdingMemory(desk.rig.adapters.memory))
    state = desk.run()
    records = asyncio.run(desk.rig.adapters.journal.records(state.run_id))
    assert [spent_by(record) is not None for record in records if record.kind == "recall"] == [True]


def test_who_recalled_a_card_is_told_of_such_recalls_too(desk: Desk) -> None:
    first, second = desk.run(), desk.run()
    card = f"{first.run_id}-{first.now.number}"
    assert asyncio.run(SqlCards(desk.database).holdings()).recalls == {card: frozenset([second.run_id])}
