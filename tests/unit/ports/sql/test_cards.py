"""Cards as people see them, and forgetting a card without a trace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.errors import StoreError
from redstart.core.learning import CardState, EdgeKind, NewMemories
from redstart.core.run import Result, RunState, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.memory.port import Approval, ForgottenTexts
from redstart.ports.sql.blobs import SqlBlobs
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.engine import Database
from redstart.ports.sql.forget import JsonScrubber
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.schema import metadata
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import card, commit, signature, spec
from support import rig as play
from support.rig import Kept, Rig, make_rig
from support.store import MemoryBlobs

SECRET = "the flamingo ledger was counted twice"
LONG = f"{SECRET} because “Ω” came first\n" + "and then some more of it " * 30
SAID = json.dumps({"summary": SECRET, "root_cause": LONG, "fix": f"no second {SECRET}", "debug_steps": [f"1 {SECRET}"]})


@pytest.fixture
def database(made: Path | str) -> Iterator[Database]:
    with Database.open(made) as database:
        yield database


@pytest.fixture
def rig(tmp_path: Path, database: Database) -> Iterator[Rig]:
    memory = SqlMemory(database, HashingEmbedder())
    kept = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlLessonStore(database))
    made = make_rig(tmp_path / "snapshots", lambda: kept)
    yield made
    made.trees.close()


async def green(rig: Rig, said: str, until: Step | None = None) -> RunState:
    rig.with_model([play.RIGHT, said])
    run_id = await rig.begin()
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline, until)).state


def everything(database: Database, made: Path | str) -> bytes:
    """Return all data of the database: its file and the files beside it, or on a server every row."""
    if isinstance(made, Path):
        return b"".join(path.read_bytes() for path in sorted(made.parent.glob(f"{made.name}*")))
    with database.reading() as connection:
        rows = [row for table in metadata.tables.values() for row in connection.execute(table.select())]
    return repr(rows).encode()


def overwrite_nothing(database: Database) -> None:
    """Make SQLite leave deleted data in place, as its default build does; some distributions build it otherwise."""
    if not database.is_postgres:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA secure_delete = OFF")


@pytest.mark.slow
def test_a_forgotten_card_is_nowhere_any_more(rig: Rig, database: Database, made: Path | str) -> None:
    overwrite_nothing(database)
    first = asyncio.run(green(rig, SAID))
    assert first.result is Result.verified
    (kept,) = asyncio.run(SqlCards(database).cards())
    second = asyncio.run(green(rig, play.CARD))
    assert second.now.plan is not None
    assert [item.card.id for item in second.now.plan.recalled] == [kept.card.id], "another run recalled it"
    blobs = rig.adapters.blobs
    assert isinstance(blobs, MemoryBlobs)
    copied = [name for name, data in blobs.kept.items() if b"flamingo" in data]
    for name in copied:
        SqlBlobs(database).put(blobs.kept[name])
    assert b"flamingo" in everything(database, made)
    assert len(copied) > 1, "the answer and the question"

    gone = asyncio.run(SqlCards(database).forget(kept.card.id))
    assert gone is not None
    assert b"flamingo" not in everything(database, made)
    assert set(copied) <= gone.blobs
    assert any(SECRET in text for text in gone.texts)
    assert [item.card.id for item in asyncio.run(SqlCards(database).cards())] == [f"{second.run_id}-1"]
    assert asyncio.run(SqlCards(database).forget(kept.card.id)) is None
    for run in (first, second):
        store = rig.adapters.store
        assert asyncio.run(store.load(run.run_id)).result is Result.verified, "the runs can still be inspected"
        assert len(asyncio.run(store.steps(run.run_id))) == run.version
    ties = asyncio.run(SqlEdges(database).edges())
    assert kept.card.id not in [tie.target for tie in ties if tie.kind is EdgeKind.has_fix_card]


@pytest.mark.slow
def test_what_a_run_was_forked_from_is_forgotten_in_it_too(rig: Rig, database: Database, made: Path | str) -> None:
    overwrite_nothing(database)
    first = asyncio.run(green(rig, SAID))
    (kept,) = asyncio.run(SqlCards(database).cards())
    fork = first.model_copy(
        update={"run_id": "fork-of-it", "spec": first.spec.model_copy(update={"parent": first.run_id})}
    )
    asyncio.run(rig.adapters.store.create(fork, folder="/home/shop", created=kept.created))
    asked = asyncio.run(SqlCards(database).told(kept.card.id))
    gone = asyncio.run(SqlCards(database).forget(kept.card.id))
    assert asked == gone, "the preview lists exactly what is forgotten"
    assert b"flamingo" not in everything(database, made)
    assert asyncio.run(SqlCards(database).told(kept.card.id)) is None


def test_words_are_found_however_they_were_written_down() -> None:
    said = 'it said "no"\\n\nof „Ω“, and then </data> "came" the rest of it, long enough to be cut "here"'
    scrub = JsonScrubber(["card-1"], [said])
    once = json.dumps(said)
    for told in (said, once, json.dumps(once), json.dumps({"text": json.dumps({"fix": once})}, ensure_ascii=False)):
        assert scrub.traces.are_in(told.encode())
    assert scrub.traces.are_in(said[-40:].encode()), "a question may have had room only for the end"
    assert scrub.traces.are_in(said.replace("</data", "</data_").encode()), "in the form that questions show"
    assert not scrub.traces.are_in(b"it said something else, and then came nothing")
    assert "Ω" not in scrub(json.dumps({"note": once}))


@pytest.mark.slow
def test_what_a_run_that_goes_on_knows_is_not_forgotten_yet(rig: Rig, database: Database) -> None:
    asyncio.run(green(rig, SAID))
    (kept,) = asyncio.run(SqlCards(database).cards())
    going = asyncio.run(green(rig, play.CARD, Step.plan))
    with pytest.raises(StoreError, match=going.run_id) as raised:
        asyncio.run(SqlCards(database).forget(kept.card.id))
    assert raised.value.remedy
    assert asyncio.run(SqlCards(database).card(kept.card.id)) == kept


@pytest.mark.slow
def test_forgetting_one_leaves_the_others_alone(rig: Rig, database: Database) -> None:
    first = asyncio.run(green(rig, SAID))
    other = asyncio.run(green(rig, play.CARD))
    before = asyncio.run(SqlJournal(database).records(first.run_id))
    gone = asyncio.run(SqlCards(database).forget(f"{other.run_id}-1"))
    assert isinstance(gone, ForgottenTexts)
    assert asyncio.run(SqlJournal(database).records(first.run_id)) == before
    (kept,) = asyncio.run(SqlCards(database).cards())
    assert kept.card.summary == SECRET
    found = asyncio.run(rig.adapters.memory.recall(_red(first), tenant="home", repo="rig"))
    assert [item.card.id for item in found] == [kept.card.id]


def _red(run: RunState) -> object:
    assert run.now.reproduce is not None
    assert run.now.reproduce.report.signature is not None
    return run.now.reproduce.report.signature


def test_a_person_puts_a_card_away_and_shows_it_again(database: Database) -> None:
    store, memory, cards = SqlStore(database, Clock()), SqlMemory(database, HashingEmbedder()), SqlCards(database)

    async def scenario() -> None:
        new, fence = await begin(store)
        await store.commit(commit(new, Step.remember, remembered=NewMemories(card=card())), fence)
        for state, found in ((CardState.quarantined, []), (CardState.shown, ["card-1"])):
            assert await cards.put("card-1", state)
            kept = await cards.card("card-1")
            assert kept is not None
            assert kept.state is state
            recalled = await memory.recall(signature(), tenant="home", repo="shop")
            assert [item.card.id for item in recalled] == found
        assert not await cards.put("nobody", CardState.shown)
        for approval, said in ((Approval("Ada", "2030-01-31"), "Ada"), (None, None)):
            assert await cards.put("card-1", CardState.shown, approval)
            kept = await cards.card("card-1")
            assert kept is not None
            assert kept.card.provenance.get("approved_by") == said
            assert kept.card.provenance.items() >= card().provenance.items()

    asyncio.run(scenario())


def test_the_cards_of_others_cannot_be_seen_or_touched(database: Database) -> None:
    async def scenario() -> None:
        for tenant in ("home", "other"):
            store = SqlStore(database.of(tenant), Clock())
            new, fence = await begin(store, spec=spec(tenant=tenant))
            left = card(f"card of {tenant}", summary=f"Told by {tenant} alone.")
            await store.commit(commit(new, Step.remember, remembered=NewMemories(card=left)), fence)
        mine = SqlCards(database)
        assert [item.card.id for item in await mine.cards()] == ["card of home"]
        assert await mine.card("card of other") is None
        assert not await mine.put("card of other", CardState.quarantined)
        assert await mine.forget("card of other") is None
        theirs = await SqlCards(database.of("other")).card("card of other")
        assert theirs is not None
        assert theirs.state is CardState.shown
        assert {edge.source.partition("/")[0] for edge in await SqlEdges(database).edges()} == {"run-1"}
        assert len(await SqlEdges(database).edges()) == 3

    asyncio.run(scenario())


def test_cards_of_one_repo_the_newest_first(database: Database) -> None:
    clock = Clock()
    store = SqlStore(database, clock)

    async def scenario() -> None:
        for number, repo in enumerate(("shop", "bank", "shop")):
            clock.time += 60
            new, fence = await begin(store, f"run-{number}", spec=spec(repo=repo))
            left = NewMemories(card=card(f"card-{number}"))
            await store.commit(commit(new, Step.remember, remembered=left), fence)
        cards = SqlCards(database)
        assert [item.card.id for item in await cards.cards()] == ["card-2", "card-1", "card-0"]
        assert [item.card.id for item in await cards.cards(repo="shop")] == ["card-2", "card-0"]
        assert [item.card.id for item in await cards.cards(limit=1)] == ["card-2"]

    asyncio.run(scenario())


def test_a_card_is_placed_anew_for_another_embedder(database: Database) -> None:
    class Other(HashingEmbedder):
        name = "hashing-other"

        async def embed(self, texts: object) -> list[list[float]]:  # pyright: ignore[reportIncompatibleMethodOverride]
            asked.append(texts)
            return [[1.0] + [0.0] * 7 for _ in texts]  # pyright: ignore

    asked: list[object] = []
    store, of = SqlStore(database, Clock()), signature(message="KeyError: 'prices'")

    async def scenario() -> None:
        new, fence = await begin(store)
        left = NewMemories(card=card(signature=of, of=of))
        await store.commit(commit(new, Step.remember, remembered=left), fence)
        ours, other = SqlMemory(database, HashingEmbedder()), SqlMemory(database, Other())
        (found,) = await ours.recall(signature(), tenant="home", repo="shop")
        assert found.source == "likeness"
        (again,) = await other.recall(signature(), tenant="home", repo="shop")
        assert again.score == 0.5, "vectors of 8 numbers are compared only with each other"
        await other.recall(signature(), tenant="home", repo="shop")
        assert len(asked) == 3, "each card is embedded once, and each query"
        assert await ours.recall(signature(), tenant="home", repo="shop") == [found]

    asyncio.run(scenario())
