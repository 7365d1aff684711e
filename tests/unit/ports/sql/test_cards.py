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
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
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
from redstart.testing.states import commit, make_card, make_signature, make_spec
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
    stores = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlLessonStore(database))
    test_rig = make_rig(tmp_path / "snapshots", lambda: stores)
    yield test_rig
    test_rig.trees.close()


async def run_fix(rig: Rig, card_answer: str, until: Step | None = None) -> RunState:
    rig.with_model([play.RIGHT, card_answer])
    run_id = await rig.begin()
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline, until)).state


def dump_database(database: Database, made: Path | str) -> bytes:
    """Return all data of the database: its file and the files beside it, or on a server every row."""
    if isinstance(made, Path):
        return b"".join(path.read_bytes() for path in sorted(made.parent.glob(f"{made.name}*")))
    with database.connect_for_reading() as connection:
        rows = [row for table in metadata.tables.values() for row in connection.execute(table.select())]
    return repr(rows).encode()


def disable_secure_delete(database: Database) -> None:
    """Make SQLite leave deleted data in place, as its default build does; some distributions build it otherwise."""
    if not database.is_postgres:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA secure_delete = OFF")


@pytest.mark.slow
async def test_forgotten_card_leaves_no_trace(rig: Rig, database: Database, made: Path | str) -> None:
    disable_secure_delete(database)
    first_state = await run_fix(rig, SAID)
    assert first_state.result is Result.verified
    (stored_card,) = await SqlCards(database).list_cards()
    second_state = await run_fix(rig, play.CARD)
    assert second_state.now.plan is not None
    assert [item.card.id for item in second_state.now.plan.recalled] == [stored_card.card.id], "another run recalled it"
    blobs = rig.adapters.blobs
    assert isinstance(blobs, MemoryBlobs)
    copied = [name for name, data in blobs.kept.items() if b"flamingo" in data]
    for name in copied:
        SqlBlobs(database).put(blobs.kept[name])
    assert b"flamingo" in dump_database(database, made)
    assert len(copied) > 1, "the answer and the question"

    forgotten_texts = await SqlCards(database).forget(stored_card.card.id)
    assert forgotten_texts is not None
    assert b"flamingo" not in dump_database(database, made)
    assert set(copied) <= forgotten_texts.blobs
    assert any(SECRET in text for text in forgotten_texts.texts)
    assert [item.card.id for item in await SqlCards(database).list_cards()] == [f"{second_state.run_id}-1"]
    assert await SqlCards(database).forget(stored_card.card.id) is None
    for run in (first_state, second_state):
        store = rig.adapters.store
        assert (await store.load(run.run_id)).result is Result.verified, "the runs can still be inspected"
        assert len(await store.list_steps(run.run_id)) == run.version
    edges = await SqlEdges(database).list_edges()
    assert stored_card.card.id not in [tie.target for tie in edges if tie.kind is EdgeKind.has_fix_card]


@pytest.mark.slow
def test_fork_of_a_run_also_forgets_the_card(rig: Rig, database: Database, made: Path | str) -> None:
    disable_secure_delete(database)
    first_state = asyncio.run(run_fix(rig, SAID))
    (stored_card,) = asyncio.run(SqlCards(database).list_cards())
    fork = first_state.model_copy(
        update={"run_id": "fork-of-it", "spec": first_state.spec.model_copy(update={"parent": first_state.run_id})}
    )
    asyncio.run(rig.adapters.store.create(fork, folder="/home/shop", created=stored_card.created))
    preview = asyncio.run(SqlCards(database).preview_forget(stored_card.card.id))
    forgotten_texts = asyncio.run(SqlCards(database).forget(stored_card.card.id))
    assert preview == forgotten_texts, "the preview lists exactly what is forgotten"
    assert b"flamingo" not in dump_database(database, made)
    assert asyncio.run(SqlCards(database).preview_forget(stored_card.card.id)) is None


def test_scrubber_finds_text_in_every_encoding() -> None:
    phrase = 'it said "no"\\n\nof „Ω“, and then </data> "came" the rest of it, long enough to be cut "here"'
    scrub = JsonScrubber(["card-1"], [phrase])
    encoded = json.dumps(phrase)
    for form in (
        phrase,
        encoded,
        json.dumps(encoded),
        json.dumps({"text": json.dumps({"fix": encoded})}, ensure_ascii=False),
    ):
        assert scrub.traces.has_match(form.encode())
    assert scrub.traces.has_match(phrase[-40:].encode()), "a question may have had room only for the end"
    assert scrub.traces.has_match(phrase.replace("</data", "</data_").encode()), "in the form that questions show"
    assert not scrub.traces.has_match(b"it said something else, and then came nothing")
    assert "Ω" not in scrub(json.dumps({"note": encoded}))


@pytest.mark.slow
async def test_card_known_to_an_unfinished_run_is_not_forgotten(rig: Rig, database: Database) -> None:
    await run_fix(rig, SAID)
    (stored_card,) = await SqlCards(database).list_cards()
    unfinished_state = await run_fix(rig, play.CARD, Step.plan)
    with pytest.raises(StoreError, match=unfinished_state.run_id) as caught:
        await SqlCards(database).forget(stored_card.card.id)
    assert caught.value.remedy
    assert await SqlCards(database).get_card(stored_card.card.id) == stored_card


@pytest.mark.slow
def test_forgetting_a_card_leaves_other_cards_alone(rig: Rig, database: Database) -> None:
    first_state = asyncio.run(run_fix(rig, SAID))
    other_state = asyncio.run(run_fix(rig, play.CARD))
    records_before = asyncio.run(SqlJournal(database).list_records(first_state.run_id))
    forgotten_texts = asyncio.run(SqlCards(database).forget(f"{other_state.run_id}-1"))
    assert isinstance(forgotten_texts, ForgottenTexts)
    assert asyncio.run(SqlJournal(database).list_records(first_state.run_id)) == records_before
    (stored_card,) = asyncio.run(SqlCards(database).list_cards())
    assert stored_card.card.summary == SECRET
    recalled_cards = asyncio.run(rig.adapters.memory.recall(_get_signature(first_state), tenant="home", repo="rig"))
    assert [item.card.id for item in recalled_cards] == [stored_card.card.id]


def _get_signature(run: RunState) -> object:
    assert run.now.reproduce is not None
    assert run.now.reproduce.report.signature is not None
    return run.now.reproduce.report.signature


def test_card_can_be_quarantined_and_shown_again(database: Database) -> None:
    store, memory, cards = SqlStore(database, Clock()), SqlMemory(database, HashingEmbedder()), SqlCards(database)

    async def run_scenario() -> None:
        new, fence = await begin(store)
        await store.commit(commit(new, Step.remember, remembered=NewMemories(card=make_card())), fence)
        for state, expected_ids in ((CardState.quarantined, []), (CardState.shown, ["card-1"])):
            assert await cards.put("card-1", state)
            stored_card = await cards.get_card("card-1")
            assert stored_card is not None
            assert stored_card.state is state
            recalled_cards = await memory.recall(make_signature(), tenant="home", repo="shop")
            assert [item.card.id for item in recalled_cards] == expected_ids
        assert not await cards.put("nobody", CardState.shown)
        for approval, approver in ((Approval("Ada", "2030-01-31"), "Ada"), (None, None)):
            assert await cards.put("card-1", CardState.shown, approval)
            stored_card = await cards.get_card("card-1")
            assert stored_card is not None
            assert stored_card.card.provenance.get("approved_by") == approver
            assert stored_card.card.provenance.items() >= make_card().provenance.items()

    asyncio.run(run_scenario())


async def test_cards_of_another_tenant_cannot_be_read_or_changed(database: Database) -> None:
    async def run_scenario() -> None:
        for tenant in ("home", "other"):
            store = SqlStore(database.for_tenant(tenant), Clock())
            new, fence = await begin(store, spec=make_spec(tenant=tenant))
            new_card = make_card(f"card of {tenant}", summary=f"Told by {tenant} alone.")
            await store.commit(commit(new, Step.remember, remembered=NewMemories(card=new_card)), fence)
        own_cards = SqlCards(database)
        assert [item.card.id for item in await own_cards.list_cards()] == ["card of home"]
        assert await own_cards.get_card("card of other") is None
        assert not await own_cards.put("card of other", CardState.quarantined)
        assert await own_cards.forget("card of other") is None
        other_card = await SqlCards(database.for_tenant("other")).get_card("card of other")
        assert other_card is not None
        assert other_card.state is CardState.shown
        assert {edge.source.partition("/")[0] for edge in await SqlEdges(database).list_edges()} == {"run-1"}
        assert len(await SqlEdges(database).list_edges()) == 3

    await run_scenario()


async def test_cards_of_a_repo_are_listed_newest_first(database: Database) -> None:
    clock = Clock()
    store = SqlStore(database, clock)

    async def run_scenario() -> None:
        for number, repo in enumerate(("shop", "bank", "shop")):
            clock.time += 60
            new, fence = await begin(store, f"run-{number}", spec=make_spec(repo=repo))
            memories = NewMemories(card=make_card(f"card-{number}"))
            await store.commit(commit(new, Step.remember, remembered=memories), fence)
        cards = SqlCards(database)
        assert [item.card.id for item in await cards.list_cards()] == ["card-2", "card-1", "card-0"]
        assert [item.card.id for item in await cards.list_cards(repo="shop")] == ["card-2", "card-0"]
        assert [item.card.id for item in await cards.list_cards(limit=1)] == ["card-2"]

    await run_scenario()


def test_card_is_embedded_again_for_another_embedder(database: Database) -> None:
    class Other(HashingEmbedder):
        name = "hashing-other"

        async def embed(self, texts: object) -> list[list[float]]:  # pyright: ignore[reportIncompatibleMethodOverride]
            embedded_texts.append(texts)
            return [[1.0] + [0.0] * 7 for _ in texts]  # pyright: ignore

    embedded_texts: list[object] = []
    store, failure_signature = SqlStore(database, Clock()), make_signature(message="KeyError: 'prices'")

    async def run_scenario() -> None:
        new, fence = await begin(store)
        memories = NewMemories(card=make_card(signature=failure_signature, failure_signature=failure_signature))
        await store.commit(commit(new, Step.remember, remembered=memories), fence)
        own_memory, other_memory = SqlMemory(database, HashingEmbedder()), SqlMemory(database, Other())
        (recalled_card,) = await own_memory.recall(make_signature(), tenant="home", repo="shop")
        assert recalled_card.source == "likeness"
        (reembedded_card,) = await other_memory.recall(make_signature(), tenant="home", repo="shop")
        assert reembedded_card.score == 0.5, "vectors of 8 numbers are compared only with each other"
        await other_memory.recall(make_signature(), tenant="home", repo="shop")
        assert len(embedded_texts) == 3, "each card is embedded once, and each query"
        assert await own_memory.recall(make_signature(), tenant="home", repo="shop") == [recalled_card]

    asyncio.run(run_scenario())
