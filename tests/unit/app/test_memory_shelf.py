"""Memory as programs use it, with each place for runs and their blobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.app.memory import (
    TenantMemory,
    approve_card,
    forget_learned,
    list_cards,
    memory_stats,
    open_memory,
    show_card,
)
from redstart.app.settings import Settings
from redstart.app.settings.store import StoreSettings
from redstart.app.wire import blobs_of, open_database
from redstart.core.errors import ConfigError, StoreError
from redstart.core.learning import CardState
from redstart.core.run import Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.memory.port import ForgottenTexts
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.schema import metadata
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock
from support import rig as play
from support.rig import Kept, Rig, make_rig
from support.store import MemoryBlobs

pytestmark = pytest.mark.slow

WORD = "flamingo"
SAID = json.dumps(
    {"summary": f'the "{WORD}" ledger\nwas counted', "root_cause": f"{WORD} „Ω“ twice or so", "fix": f"no {WORD} now"}
)
NOW = datetime(2030, 1, 31, tzinfo=UTC)


class Place(NamedTuple):
    settings: Settings
    database: Database
    rig: Rig

    def run(self, said: str, until: Step | None = None) -> str:
        """Drive a run, store its blobs where the settings say, and return its ID."""
        self.rig.with_model([play.RIGHT, said])

        async def go() -> str:
            run_id = await self.rig.begin()
            await drive(self.rig.adapters, await self.rig.adapters.store.claim(run_id), inline, until)
            return run_id

        run_id = asyncio.run(go())
        assert isinstance(self.rig.adapters.blobs, MemoryBlobs)
        for data in self.rig.adapters.blobs.kept.values():
            blobs_of(self.settings, self.database).put(data)
        return run_id

    def traces(self) -> list[str]:
        """List the files and tables that contain the word."""
        found = [str(path) for path in self.settings.home.rglob("*") if path.is_file() and holds(path.read_bytes())]
        with self.database.reading() as connection:
            for table in metadata.tables.values():
                found += [table.name for row in connection.execute(table.select()) if holds(repr(tuple(row)).encode())]
        return found


def holds(data: bytes) -> bool:
    return WORD.encode() in data


@pytest.fixture(params=["folder", "database", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    store = StoreSettings(blobs="database" if request.param == "database" else "")
    if request.param == "postgres":
        make: Callable[[], str] = request.getfixturevalue("new_postgres")
        store = StoreSettings(url=make())
    settings = Settings(home=tmp_path / "home", store=store)
    with open_database(settings) as database:
        memory = SqlMemory(database, HashingEmbedder())
        kept = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlLessonStore(database))
        rig = make_rig(tmp_path / "snapshots", lambda: kept)
        yield Place(settings, database, rig)
        rig.trees.close()


@pytest.fixture
def shelf(place: Place) -> Iterator[TenantMemory]:
    with open_memory(place.settings) as opened:
        yield opened


def test_what_is_forgotten_is_nowhere(place: Place, shelf: TenantMemory) -> None:
    place.run(SAID)
    place.run(play.CARD)
    assert {"cards", "journal"} <= set(place.traces())
    (_, first) = asyncio.run(list_cards(shelf))
    story = asyncio.run(show_card(shelf, first.id))
    assert len(story.recalled_by) == 1
    gone = asyncio.run(forget_learned(shelf, first.id))
    assert gone.blobs > 1, "the question and the answer"
    assert place.traces() == []
    found = asyncio.run(memory_stats(shelf))
    assert (found.cards, found.recalled, found.repos) == (1, 1, {"rig": 1})
    with pytest.raises(ConfigError, match="no fix card"):
        asyncio.run(forget_learned(shelf, first.id))


def test_a_forgetting_that_was_interrupted_is_done_again(place: Place, shelf: TenantMemory) -> None:
    class Interrupted(SqlCards):
        async def forget(self, card_id: str) -> ForgottenTexts | None:
            raise StoreError(f"the power went before {card_id}")

    place.run(SAID)
    (card,) = asyncio.run(list_cards(shelf))
    with pytest.raises(StoreError, match="power"):
        asyncio.run(forget_learned(shelf._replace(cards=Interrupted(place.database)), card.id))
    assert [item.id for item in asyncio.run(list_cards(shelf))] == [card.id]
    asyncio.run(forget_learned(shelf, card.id))
    assert place.traces() == []


def test_nothing_goes_while_a_run_that_knows_it_has_not_ended(place: Place, shelf: TenantMemory) -> None:
    place.run(SAID)
    (card,) = asyncio.run(list_cards(shelf))
    going = place.run(play.CARD, until=Step.patch)
    before = sorted(place.traces())
    with pytest.raises(StoreError, match=going):
        asyncio.run(forget_learned(shelf, card.id))
    assert sorted(place.traces()) == before


def test_only_what_is_in_quarantine_is_approved_and_by_a_name(place: Place, shelf: TenantMemory) -> None:
    run = place.run(play.CARD)
    (card,) = asyncio.run(list_cards(shelf))
    assert asyncio.run(approve_card(shelf, run, by="Ada", now=NOW)) == card, "it is shown: nobody needs to approve it"
    asyncio.run(shelf.cards.put(card.id, CardState.quarantined))
    for nobody in ("", " \n", "a" * 101, "Ada \x1b[31m"):
        with pytest.raises(ConfigError):
            asyncio.run(approve_card(shelf, run, by=nobody, now=NOW))
    assert asyncio.run(show_card(shelf, run)).state is CardState.quarantined
    approved = asyncio.run(approve_card(shelf, run, by="Ada", now=NOW))
    assert approved.state is CardState.shown
    said = {"approved_by": "Ada", "approved_at": "2030-01-31T00:00:00+00:00"}
    assert approved.card.provenance == {**card.card.provenance, **said}


def test_the_beginning_of_an_id_is_enough_where_it_is_one_only(place: Place, shelf: TenantMemory) -> None:
    first, second = place.run(play.CARD), place.run(play.CARD)
    assert asyncio.run(show_card(shelf, first)).id == f"{first}-1"
    alike = "".join(item for item, other in zip(first, second, strict=False) if item == other)
    assert first.startswith(alike)
    assert second.startswith(alike)
    assert alike
    with pytest.raises(ConfigError, match="several fix cards begin with"):
        asyncio.run(show_card(shelf, alike))
    with pytest.raises(ConfigError, match="no fix card"):
        asyncio.run(show_card(shelf, first.upper() + "X"))
