"""Recall with an embedding model that may be unavailable, changed or expensive never loses an exact match."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.chat import Usage
from redstart.core.learning import NewMemories, RecalledCard, Signature
from redstart.core.run import Limits, Spend, Step
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.model.budget import RunLedger
from redstart.ports.model.embedding import ApiEmbedder, EmbeddingOptions
from redstart.ports.model.endpoints import resolve_address
from redstart.ports.sql import memory as module
from redstart.ports.sql.engine import Database
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import commit, make_card, make_signature
from support.server import Reply, Request, ScriptedServer

ASKED = make_signature()
ALIKE = make_signature(message="KeyError: 'prices'", frame="shop/cart.py:Cart.totals")
"""A signature with another key and family but similar wording."""


class Heard(RunLedger):
    """A ledger that records used tokens and reported lacks."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits or Limits(), Spend())
        self.tokens = 0
        self.lacked: list[str] = []

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        super().settle(usd, tokens, used)
        self.tokens += used.tokens

    def lacks(self, reason: str) -> None:
        self.lacked.append(reason)


class Desk:
    """A database with cards, and an embedding model that a test can break."""

    def __init__(self, database: Database, server: ScriptedServer) -> None:
        self.database, self.server = database, server
        self.spoiled: Reply | None = None
        self.store = SqlStore(database, Clock())

    def answer(self, request: Request) -> Reply:
        del request
        return self.spoiled or Reply()

    def keep(self, **cards: Signature) -> None:
        async def keep_all() -> None:
            for name, failure_signature in cards.items():
                new, fence = await begin(self.store, f"run-{name}")
                memories = NewMemories(card=make_card(name, failure_signature, signature=failure_signature))
                await self.store.commit(commit(new, Step.remember, remembered=memories), fence)

        asyncio.run(keep_all())

    def create_memory(self, name: str = "openai:small") -> SqlMemory:
        def reach() -> object:
            return resolve_address(name, base_url=self.server.openai_url, api_key=None)

        manner = EmbeddingOptions(deadline=120.0, similarity_threshold=0.5)
        return SqlMemory(self.database, ApiEmbedder(reach, name, manner))  # pyright: ignore[reportArgumentType]

    def recall(self, memory: SqlMemory | None = None, ledger: Heard | None = None) -> list[tuple[str, str]]:
        scoped_memory = (memory or self.create_memory()).with_meter(ledger or Heard())
        recalled_cards: list[RecalledCard] = asyncio.run(
            scoped_memory.recall(ASKED, tenant="home", repo="shop", limit=9)
        )
        return [(item.card.id, item.source) for item in recalled_cards]

    @property
    def call_sizes(self) -> list[int]:
        """The number of texts in each call."""
        return [len(request.texts or ()) for request in self.server.requests]


@pytest.fixture
def desk(made: Path | str) -> Iterator[Desk]:
    desks: list[Desk] = []
    with Database.open(made) as database, ScriptedServer(lambda request: desks[0].answer(request)) as server:
        desks.append(Desk(database, server))
        yield desks[0]


def test_cards_are_found_by_their_words_and_embedded_only_once(desk: Desk) -> None:
    desk.keep(same=ASKED, alike=ALIKE)
    ledger = Heard()
    assert desk.recall(ledger=ledger) == [("same", "signature"), ("alike", "likeness")]
    assert desk.call_sizes == [1, 2]
    assert ledger.tokens == sum(sum(request.counted) for request in desk.server.requests) > 0
    assert ledger.lacked == []
    assert desk.recall() == [("same", "signature"), ("alike", "likeness")]
    assert desk.call_sizes == [1, 2, 1]


@pytest.mark.parametrize(
    "spoiled",
    [Reply(status=500), Reply(status=401), Reply(drop=True), Reply(body=b"<html>"), Reply(places=[[1.0]] * 9)],
)
def test_unavailable_embedder_loses_no_exact_match(desk: Desk, spoiled: Reply) -> None:
    desk.keep(same=ASKED, alike=ALIKE)
    desk.spoiled, ledger = spoiled, Heard()
    assert desk.recall(ledger=ledger) == [("same", "signature")]
    assert len(ledger.lacked) == 1
    assert "openai:small" in ledger.lacked[0]
    desk.spoiled = None
    assert desk.recall() == [("same", "signature"), ("alike", "likeness")], "the missing vectors are added later"


def test_embedded_cards_are_compared_even_if_others_cannot_be_embedded(desk: Desk) -> None:
    desk.keep(alike=ALIKE)
    assert desk.recall() == [("alike", "likeness")]
    desk.keep(later=ALIKE)
    calls: list[int] = []

    def reply_once(request: Request) -> Reply:
        calls.append(len(request.texts or ()))
        return Reply() if len(calls) == 1 else Reply(status=503)

    desk.answer = reply_once
    ledger = Heard()
    assert desk.recall(ledger=ledger) == [("alike", "likeness")]
    assert (len(calls), len(ledger.lacked)) == (2, 1)


def test_budget_limit_prevents_the_embedding_request(desk: Desk) -> None:
    desk.keep(same=ASKED, alike=ALIKE)
    ledger = Heard(Limits(tokens=10))
    assert desk.recall(ledger=ledger) == [("same", "signature")]
    assert "tokens" in ledger.lacked[0]
    assert desk.call_sizes == []


def test_misconfigured_embedder_is_reported(desk: Desk) -> None:
    desk.keep(same=ASKED)
    ledger = Heard()
    assert desk.recall(desk.create_memory("nobody:small"), ledger) == [("same", "signature")]
    assert "nobody:small" in ledger.lacked[0]


def test_vectors_of_another_model_are_never_compared(desk: Desk) -> None:
    desk.keep(alike=ALIKE)
    assert desk.recall(desk.create_memory("openai:small")) == [("alike", "likeness")]
    built_in = SqlMemory(desk.database, HashingEmbedder())
    assert desk.recall(built_in) == [("alike", "likeness")]
    # A model of the same name whose vectors changed: all earlier vectors are in another space.
    desk.answer = lambda request: Reply(places=[[1.0, 0.0]] * len(request.texts or ()))
    assert desk.recall(desk.create_memory("openai:small")) == [("alike", "likeness")], (
        "embedded again, all the same vector"
    )
    desk.answer = lambda request: Reply(places=[[0.0, 1.0]] * len(request.texts or ()), model="other")
    refused = desk.create_memory("openai:small")
    calls_before = len(desk.call_sizes)
    assert desk.recall(refused) == [("alike", "likeness")]
    assert desk.call_sizes[calls_before:] == [1, 1], "its own vector was not taken from the earlier model"


def test_switching_back_to_a_model_embeds_no_card_twice(desk: Desk) -> None:
    desk.keep(one=ALIKE, two=ALIKE)
    first_memory, second_memory = desk.create_memory("openai:small"), desk.create_memory("openai:large")
    for memory in (first_memory, second_memory, first_memory, second_memory):
        assert len(desk.recall(memory)) == 2
    assert desk.call_sizes == [1, 2, 1, 2, 1, 1]


def test_recall_embeds_a_limited_number_of_cards(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2)
    desk.keep(one=ALIKE, two=ALIKE, three=ALIKE)
    assert len(desk.recall()) == 2
    assert len(desk.recall()) == 3
    assert desk.call_sizes == [1, 2, 1, 1]
    assert len(desk.recall(SqlMemory(desk.database, HashingEmbedder()))) == 3, "a free embedder does all at once"
