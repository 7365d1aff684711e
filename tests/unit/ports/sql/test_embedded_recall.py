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
from redstart.ports.model.endpoints import address
from redstart.ports.sql import memory as module
from redstart.ports.sql.engine import Database
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import card, commit, signature
from support.server import Reply, Request, ScriptedServer

ASKED = signature()
ALIKE = signature(message="KeyError: 'prices'", frame="shop/cart.py:Cart.totals")
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

    def lacks(self, why: str) -> None:
        self.lacked.append(why)


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
        async def all_of_them() -> None:
            for name, of in cards.items():
                new, fence = await begin(self.store, f"run-{name}")
                left = NewMemories(card=card(name, of, signature=of))
                await self.store.commit(commit(new, Step.remember, remembered=left), fence)

        asyncio.run(all_of_them())

    def memory(self, name: str = "openai:small") -> SqlMemory:
        def reach() -> object:
            return address(name, base_url=self.server.openai_url, api_key=None)

        manner = EmbeddingOptions(deadline=120.0, near=0.5)
        return SqlMemory(self.database, ApiEmbedder(reach, name, manner))  # pyright: ignore[reportArgumentType]

    def recall(self, memory: SqlMemory | None = None, heard: Heard | None = None) -> list[tuple[str, str]]:
        mine = (memory or self.memory()).under(heard or Heard())
        found: list[RecalledCard] = asyncio.run(mine.recall(ASKED, tenant="home", repo="shop", limit=9))
        return [(item.card.id, item.source) for item in found]

    @property
    def asked(self) -> list[int]:
        """The number of texts in each call."""
        return [len(request.texts or ()) for request in self.server.requests]


@pytest.fixture
def desk(made: Path | str) -> Iterator[Desk]:
    desks: list[Desk] = []
    with Database.open(made) as database, ScriptedServer(lambda request: desks[0].answer(request)) as server:
        desks.append(Desk(database, server))
        yield desks[0]


def test_cards_are_found_by_their_words_and_each_is_placed_once(desk: Desk) -> None:
    desk.keep(same=ASKED, alike=ALIKE)
    heard = Heard()
    assert desk.recall(heard=heard) == [("same", "signature"), ("alike", "likeness")]
    assert desk.asked == [1, 2]
    assert heard.tokens == sum(sum(request.counted) for request in desk.server.requests) > 0
    assert heard.lacked == []
    assert desk.recall() == [("same", "signature"), ("alike", "likeness")]
    assert desk.asked == [1, 2, 1]


@pytest.mark.parametrize(
    "spoiled",
    [Reply(status=500), Reply(status=401), Reply(drop=True), Reply(body=b"<html>"), Reply(places=[[1.0]] * 9)],
)
def test_an_embedder_that_is_away_loses_nothing_exact(desk: Desk, spoiled: Reply) -> None:
    desk.keep(same=ASKED, alike=ALIKE)
    desk.spoiled, heard = spoiled, Heard()
    assert desk.recall(heard=heard) == [("same", "signature")]
    assert len(heard.lacked) == 1
    assert "openai:small" in heard.lacked[0]
    desk.spoiled = None
    assert desk.recall() == [("same", "signature"), ("alike", "likeness")], "the missing vectors are added later"


def test_cards_that_have_their_places_are_compared_where_the_others_get_none(desk: Desk) -> None:
    desk.keep(alike=ALIKE)
    assert desk.recall() == [("alike", "likeness")]
    desk.keep(later=ALIKE)
    calls: list[int] = []

    def only_the_question(request: Request) -> Reply:
        calls.append(len(request.texts or ()))
        return Reply() if len(calls) == 1 else Reply(status=503)

    desk.answer = only_the_question
    heard = Heard()
    assert desk.recall(heard=heard) == [("alike", "likeness")]
    assert (len(calls), len(heard.lacked)) == (2, 1)


def test_what_the_budget_forbids_is_not_asked(desk: Desk) -> None:
    desk.keep(same=ASKED, alike=ALIKE)
    heard = Heard(Limits(tokens=10))
    assert desk.recall(heard=heard) == [("same", "signature")]
    assert "tokens" in heard.lacked[0]
    assert desk.asked == []


def test_an_embedder_that_cannot_be_asked_as_it_is_set_is_told_of(desk: Desk) -> None:
    desk.keep(same=ASKED)
    heard = Heard()
    assert desk.recall(desk.memory("nobody:small"), heard) == [("same", "signature")]
    assert "nobody:small" in heard.lacked[0]


def test_places_of_another_model_are_never_compared(desk: Desk) -> None:
    desk.keep(alike=ALIKE)
    assert desk.recall(desk.memory("openai:small")) == [("alike", "likeness")]
    built_in = SqlMemory(desk.database, HashingEmbedder())
    assert desk.recall(built_in) == [("alike", "likeness")]
    # A model of the same name whose vectors changed: all earlier vectors are in another space.
    desk.answer = lambda request: Reply(places=[[1.0, 0.0]] * len(request.texts or ()))
    assert desk.recall(desk.memory("openai:small")) == [("alike", "likeness")], "embedded again, all the same vector"
    desk.answer = lambda request: Reply(places=[[0.0, 1.0]] * len(request.texts or ()), model="other")
    refused = desk.memory("openai:small")
    before = len(desk.asked)
    assert desk.recall(refused) == [("alike", "likeness")]
    assert desk.asked[before:] == [1, 1], "its own vector was not taken from the earlier model"


def test_who_comes_back_to_a_model_pays_for_no_card_twice(desk: Desk) -> None:
    desk.keep(one=ALIKE, two=ALIKE)
    first, second = desk.memory("openai:small"), desk.memory("openai:large")
    for each in (first, second, first, second):
        assert len(desk.recall(each)) == 2
    assert desk.asked == [1, 2, 1, 2, 1, 1]


def test_a_recall_waits_for_so_many_cards_and_no_more(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2)
    desk.keep(one=ALIKE, two=ALIKE, three=ALIKE)
    assert len(desk.recall()) == 2
    assert len(desk.recall()) == 3
    assert desk.asked == [1, 2, 1, 1]
    assert len(desk.recall(SqlMemory(desk.database, HashingEmbedder()))) == 3, "a free embedder does all at once"
