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
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.ports.model.replay import Cassette, ReplayModel
from redstart.ports.model.secret_mask import MaskedModel
from support.rig import CARD, RIGHT, WRONG, Rig, make_rig

pytestmark = pytest.mark.slow

SECRET = "q7Zr2mWx9LpT4vKb8NcY"
PLAN = '{"summary": "look again", "subtasks": []}'
GOAL = f"the price of two; the shop's key is {SECRET}"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    new_rig = make_rig(tmp_path / "snapshots")
    yield new_rig
    new_rig.trees.close()


def drive_run(rig: Rig, run_id: str) -> RunState:
    claim = asyncio.run(rig.adapters.store.claim(run_id))
    return asyncio.run(drive(rig.adapters, claim, run_inline)).state


def export_recorded_run(rig: Rig, to: Path) -> Cassette:
    """Export the cassette of a run that needs two attempts."""
    rig.with_model([PLAN, WRONG, RIGHT, CARD])
    run_id = asyncio.run(rig.begin(goal=GOAL))
    assert drive_run(rig, run_id).result is Result.verified
    app = AppContext(Settings(home=to.parent), rig.adapters, rig.trees)
    export_result = asyncio.run(export_cassette(app, run_id, to))
    assert (export_result.calls, export_result.begins_late) == (4, "")
    return Cassette.load(to)


def test_recorded_calls_lead_a_new_run_to_the_same_end(rig: Rig, tmp_path: Path) -> None:
    cassette = export_recorded_run(rig, tmp_path / "run.json")
    assert [site.rpartition("/")[0] for site in cassette.calls] == ["1/plan", "1/patch", "2/patch", "2/remember"]
    assert [call.text for call in cassette.calls.values()] == [PLAN, WRONG, RIGHT, CARD]
    assert cassette.usage.input_tokens > 0
    twin = rig.twin()
    twin.adapters = replace(twin.adapters, model=MaskedModel(ReplayModel(cassette), {SECRET: "shop_api_key"}))
    state = drive_run(twin, asyncio.run(twin.begin(goal=GOAL)))
    assert (state.result, state.now.number, state.spend.tokens) == (Result.verified, 2, 0)


def test_no_secret_is_written(rig: Rig, tmp_path: Path) -> None:
    export_recorded_run(rig, tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text()
    assert SECRET not in text
    assert "the shop's key is «secret:shop_api_key»" in text


def test_export_overwrites_a_cassette_but_no_other_file(rig: Rig, tmp_path: Path) -> None:
    first_cassette = export_recorded_run(rig, tmp_path / "run.json")
    assert export_recorded_run(rig.twin(), tmp_path / "run.json") == first_cassette
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a cassette"):
        export_recorded_run(rig.twin(), tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


async def test_run_without_model_calls_cannot_be_exported(rig: Rig, tmp_path: Path) -> None:
    run_id = await rig.begin()
    app = AppContext(Settings(home=tmp_path), rig.adapters, rig.trees)
    with pytest.raises(ConfigError, match="called no model"):
        await export_cassette(app, run_id, tmp_path / "run.json")
