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
    compute_memory_stats,
    forget_learned,
    list_cards,
    open_memory,
    show_card,
)
from redstart.app.settings import Settings
from redstart.app.settings.store import StoreSettings
from redstart.app.wire import create_blob_store, open_database
from redstart.core.errors import ConfigError, StoreError
from redstart.core.learning import CardState
from redstart.core.run import Step
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
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

    def run(self, answer: str, until: Step | None = None) -> str:
        """Drive a run, store its blobs where the settings say, and return its ID."""
        self.rig.with_model([play.RIGHT, answer])

        async def go() -> str:
            run_id = await self.rig.begin()
            await drive(self.rig.adapters, await self.rig.adapters.store.claim(run_id), run_inline, until)
            return run_id

        run_id = asyncio.run(go())
        assert isinstance(self.rig.adapters.blobs, MemoryBlobs)
        for data in self.rig.adapters.blobs.kept.values():
            create_blob_store(self.settings, self.database).put(data)
        return run_id

    def list_traces(self) -> list[str]:
        """List the files and tables that contain the word."""
        locations = [
            str(path) for path in self.settings.home.rglob("*") if path.is_file() and contains_word(path.read_bytes())
        ]
        with self.database.connect_for_reading() as connection:
            for table in metadata.tables.values():
                locations += [
                    table.name for row in connection.execute(table.select()) if contains_word(repr(tuple(row)).encode())
                ]
        return locations


def contains_word(data: bytes) -> bool:
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
        stores = Kept(SqlStore(database, Clock()), SqlJournal(database), memory, SqlLessonStore(database))
        rig = make_rig(tmp_path / "snapshots", lambda: stores)
        yield Place(settings, database, rig)
        rig.trees.close()


@pytest.fixture
def shelf(place: Place) -> Iterator[TenantMemory]:
    with open_memory(place.settings) as memory:
        yield memory


def test_forgotten_card_leaves_no_trace(place: Place, shelf: TenantMemory) -> None:
    place.run(SAID)
    place.run(play.CARD)
    assert {"cards", "journal"} <= set(place.list_traces())
    (_, first_card) = asyncio.run(list_cards(shelf))
    details = asyncio.run(show_card(shelf, first_card.id))
    assert len(details.recalled_by) == 1
    removed = asyncio.run(forget_learned(shelf, first_card.id))
    assert removed.blobs > 1, "the question and the answer"
    assert place.list_traces() == []
    stats = asyncio.run(compute_memory_stats(shelf))
    assert (stats.cards, stats.recalled, stats.repos) == (1, 1, {"rig": 1})
    with pytest.raises(ConfigError, match="there is no fix card"):
        asyncio.run(forget_learned(shelf, first_card.id))


def test_interrupted_forgetting_can_be_repeated(place: Place, shelf: TenantMemory) -> None:
    class Interrupted(SqlCards):
        async def forget(self, card_id: str) -> ForgottenTexts | None:
            raise StoreError(f"the power went before {card_id}")

    place.run(SAID)
    (card,) = asyncio.run(list_cards(shelf))
    with pytest.raises(StoreError, match="power"):
        asyncio.run(forget_learned(shelf._replace(cards=Interrupted(place.database)), card.id))
    assert [item.id for item in asyncio.run(list_cards(shelf))] == [card.id]
    asyncio.run(forget_learned(shelf, card.id))
    assert place.list_traces() == []


def test_card_is_not_forgotten_while_an_unfinished_run_uses_it(place: Place, shelf: TenantMemory) -> None:
    place.run(SAID)
    (card,) = asyncio.run(list_cards(shelf))
    running_id = place.run(play.CARD, until=Step.patch)
    before = sorted(place.list_traces())
    with pytest.raises(StoreError, match=running_id):
        asyncio.run(forget_learned(shelf, card.id))
    assert sorted(place.list_traces()) == before


def test_approval_needs_a_quarantined_card_and_a_valid_name(place: Place, shelf: TenantMemory) -> None:
    run = place.run(play.CARD)
    (card,) = asyncio.run(list_cards(shelf))
    assert asyncio.run(approve_card(shelf, run, approver="Ada", now=NOW)) == card, (
        "it is shown: nobody needs to approve it"
    )
    asyncio.run(shelf.cards.put(card.id, CardState.quarantined))
    for nobody in ("", " \n", "a" * 101, "Ada \x1b[31m"):
        with pytest.raises(ConfigError):
            asyncio.run(approve_card(shelf, run, approver=nobody, now=NOW))
    assert asyncio.run(show_card(shelf, run)).state is CardState.quarantined
    approval = asyncio.run(approve_card(shelf, run, approver="Ada", now=NOW))
    assert approval.state is CardState.shown
    provenance = {"approved_by": "Ada", "approved_at": "2030-01-31T00:00:00+00:00"}
    assert approval.card.provenance == {**card.card.provenance, **provenance}


def test_unique_id_prefix_is_enough(place: Place, shelf: TenantMemory) -> None:
    first_run, second_run = place.run(play.CARD), place.run(play.CARD)
    assert asyncio.run(show_card(shelf, first_run)).id == f"{first_run}-1"
    alike = "".join(item for item, other in zip(first_run, second_run, strict=False) if item == other)
    assert first_run.startswith(alike)
    assert second_run.startswith(alike)
    assert alike
    with pytest.raises(ConfigError, match="the IDs of several fix cards begin with"):
        asyncio.run(show_card(shelf, alike))
    with pytest.raises(ConfigError, match="there is no fix card"):
        asyncio.run(show_card(shelf, first_run.upper() + "X"))
