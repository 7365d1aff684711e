"""A run's cassette is written, then replayed in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.app.export import export_cassette
from redstart.app.settings import Settings
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.run import Result, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.model.mask import MaskedModel
from redstart.ports.model.replay import Cassette, ReplayModel
from support.rig import CARD, RIGHT, WRONG, Rig, make_rig

pytestmark = pytest.mark.slow

SECRET = "q7Zr2mWx9LpT4vKb8NcY"
PLAN = '{"summary": "look again", "subtasks": []}'
GOAL = f"the price of two; the shop's key is {SECRET}"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def done(rig: Rig, run_id: str) -> RunState:
    claim = asyncio.run(rig.adapters.store.claim(run_id))
    return asyncio.run(drive(rig.adapters, claim, inline)).state


def recorded(rig: Rig, to: Path) -> Cassette:
    """Export the cassette of a run that needs two attempts."""
    rig.with_model([PLAN, WRONG, RIGHT, CARD])
    run_id = asyncio.run(rig.begin(goal=GOAL))
    assert done(rig, run_id).result is Result.verified
    house = AppContext(Settings(home=to.parent), rig.adapters, rig.trees)
    exported = asyncio.run(export_cassette(house, run_id, to))
    assert (exported.calls, exported.begins_late) == (4, "")
    return Cassette.load(to)


def test_what_was_recorded_leads_a_new_run_to_the_same_end(rig: Rig, tmp_path: Path) -> None:
    cassette = recorded(rig, tmp_path / "run.json")
    assert [site.rpartition("/")[0] for site in cassette.calls] == ["1/plan", "1/patch", "2/patch", "2/remember"]
    assert [call.text for call in cassette.calls.values()] == [PLAN, WRONG, RIGHT, CARD]
    assert cassette.usage.input_tokens > 0
    twin = rig.twin()
    twin.adapters = replace(twin.adapters, model=MaskedModel(ReplayModel(cassette), {SECRET: "shop_api_key"}))
    state = done(twin, asyncio.run(twin.begin(goal=GOAL)))
    assert (state.result, state.now.number, state.spend.tokens) == (Result.verified, 2, 0)


def test_no_secret_is_written(rig: Rig, tmp_path: Path) -> None:
    recorded(rig, tmp_path / "run.json")
    written = (tmp_path / "run.json").read_text()
    assert SECRET not in written
    assert "the shop's key is «secret:shop_api_key»" in written


def test_a_cassette_is_written_anew_and_no_other_file(rig: Rig, tmp_path: Path) -> None:
    first = recorded(rig, tmp_path / "run.json")
    assert recorded(rig.twin(), tmp_path / "run.json") == first
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a cassette"):
        recorded(rig.twin(), tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_that_asked_no_model(rig: Rig, tmp_path: Path) -> None:
    run_id = asyncio.run(rig.begin())
    house = AppContext(Settings(home=tmp_path), rig.adapters, rig.trees)
    with pytest.raises(ConfigError, match="asked no model"):
        asyncio.run(export_cassette(house, run_id, tmp_path / "run.json"))
