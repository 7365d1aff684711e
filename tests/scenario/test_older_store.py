"""A store and a cassette from the version before format versions, and stores of a newer version."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.app.worker import go
from redstart.core.errors import ModelError, NewerFormat, ReplayDiverged
from redstart.core.formats import get_current_version
from redstart.core.run import Result, Step
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.engines.temporal.orders import DriveOrder
from redstart.flow.loop import STEPS
from redstart.ports.model.replay import Cassette, ReplayModel
from support import rig as play
from support.rig import make_rig
from support.server import ScriptedServer, Wire
from support.user import User

FIXTURES = Path(__file__).parent.parent / "fixtures" / "formats"
FINISHED, PAUSED, ASKS = "rig-1", "rig-2", "rig-3"
AFTER_TEST = {"remember", "decide"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Return a user whose runs the earlier version stored."""
    user = User(tmp_path, Path(sys.prefix))
    with tarfile.open(FIXTURES / "store.tar.gz") as archive:
        archive.extractall(user.home, filter="data")
    return user


@pytest.fixture
def house(user: User) -> Iterator[AppContext]:
    with open_app(Settings(home=user.home)) as app:
        yield app


def query_rows(user: User, query: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        return database.execute(query, values).fetchall()


def test_fixtures_name_no_machine(user: User) -> None:
    files = [path for path in (*user.home.rglob("*"), FIXTURES / "cassette.json") if path.is_file()]
    assert len(files) > 50
    matches = [re.findall(rb"/(?:root|tmp|work|home/(?!redstart\b)\w+)/", path.read_bytes()) for path in files]
    assert [hits for hits in matches if hits] == []


def test_old_runs_are_listed_and_shown(user: User) -> None:
    rows = user.redstart("runs", "list", "--json").events
    assert {row["run_id"]: row["status"] for row in rows} == {
        FINISHED: "finished",
        PAUSED: "paused",
        ASKS: "needs_input",
    }
    show_result = user.redstart("show", FINISHED)
    assert show_result.code == 0, show_result.err
    assert "verified: 1 failing test now passes" in show_result.out
    assert "+    return number + number\n" in show_result.out
    attempt = json.loads(user.redstart("show", FINISHED, "--attempt", "1", "--json").out)
    assert attempt["outcome"] == "the target test still fails"
    assert "It gives 4 for 2, as a test expects" in user.redstart("show", ASKS).out


@pytest.mark.parametrize("run_id", [FINISHED, PAUSED, ASKS])
def test_old_runs_can_be_replayed(user: User, run_id: str) -> None:
    replay_result = user.redstart("runs", "replay", run_id)
    assert replay_result.code == 0, replay_result.err
    assert "as recorded, 0 tokens spent" in replay_result.out


def test_old_paused_run_can_be_resumed_and_replayed(user: User) -> None:
    with ScriptedServer(lambda request: play.CARD) as server:
        user.uses(server, Wire.openai)
        resume_result = user.redstart("resume", PAUSED, "-m", "openai:scripted", "--json", "--unsafe-no-sandbox")
    assert resume_result.code == 0, resume_result.err
    assert resume_result.ending["result"] == "verified"
    assert {event["name"] for event in resume_result.events} == AFTER_TEST | {"run"}
    recorders = query_rows(user, "SELECT DISTINCT format, recorded_by FROM journal WHERE run_id = ? ORDER BY 1", PAUSED)
    assert recorders == [("", ""), ("1.0", get_current_version())]
    assert user.redstart("runs", "replay", PAUSED).code == 0


def test_old_question_can_be_answered(user: User) -> None:
    with ScriptedServer(lambda request: play.CARD) as server:
        user.uses(server, Wire.openai)
        resume_result = user.redstart(
            "resume", ASKS, "-m", "openai:scripted", "--accept", "--json", "--unsafe-no-sandbox"
        )
    assert resume_result.code == 0, resume_result.err
    assert resume_result.ending["result"] == "verified"


def test_old_cassette_answers_a_run(tmp_path: Path) -> None:
    rig = make_rig(tmp_path / "snapshots")
    rig.adapters = replace(rig.adapters, model=ReplayModel(Cassette.load(FIXTURES / "cassette.json")))

    async def go_on() -> Result | None:
        claim = await rig.adapters.store.claim(await rig.begin())
        return (await drive(rig.adapters, claim, run_inline)).state.result

    assert asyncio.run(go_on()) is Result.verified
    rig.trees.close()


def test_cassette_with_changed_prompts_reports_its_recording_version(tmp_path: Path) -> None:
    cassette_data = json.loads((FIXTURES / "cassette.json").read_text())
    cassette_data["calls"]["1/patch/0"]["messages"][0]["text"] = "redstart question: patch\nSing."
    (tmp_path / "other.json").write_text(json.dumps(cassette_data))
    rig = make_rig(tmp_path / "snapshots")
    rig.adapters = replace(rig.adapters, model=ReplayModel(Cassette.load(tmp_path / "other.json")))

    async def go_on() -> None:
        await drive(rig.adapters, await rig.adapters.store.claim(await rig.begin()), run_inline)

    recorded = f"made by an earlier version, and version {get_current_version()} asks different questions"
    with pytest.raises(ModelError, match=recorded):
        asyncio.run(go_on())
    rig.trees.close()


def test_run_with_changed_prompts_reports_its_recording_version(
    house: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = STEPS[Step.patch]

    async def ask_differently(run: Any, ports: Any) -> Any:
        class Model:
            async def ask(self, ask: Any) -> Any:
                return await ports.model.ask(ask.model_copy(update={"max_tokens": 7}))

        return await patch(run, replace(ports, model=Model()))

    monkeypatch.setitem(STEPS, Step.patch, ask_differently)
    with pytest.raises(ReplayDiverged) as error_info:
        asyncio.run(replay(house.adapters, FINISHED))
    assert str(error_info.value) == (
        f"run {FINISHED} was recorded by an earlier version; version {get_current_version()} differs at "
        "attempt 1, patch, call 0 (model): its request differs from the one recorded"
    )
    assert error_info.value.remedy == "replay it with an earlier version"


@pytest.fixture
def newer(user: User, house: AppContext) -> User:
    """Return the same user after a newer version continued the paused run."""
    state = json.dumps({"format": "2.0", "run_id": PAUSED, "shape": "unknown here"})
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        database.execute("UPDATE runs SET state = ? WHERE id = ?", (state, PAUSED))
    return user


def test_run_of_a_newer_format_is_declined_and_left_unchanged(newer: User, house: AppContext) -> None:
    query = "SELECT * FROM runs WHERE id = ?"
    before = query_rows(newer, query, PAUSED)
    rows = {row["run_id"]: row for row in newer.redstart("runs", "list", "--json").events}
    assert rows.keys() == {FINISHED, PAUSED, ASKS}
    assert rows[PAUSED]["reason"].startswith(f"run {PAUSED} was stored by a newer version of redstart")
    for command in ("show", "resume"):
        declined = newer.redstart(command, PAUSED)
        assert declined.code == 3
        assert declined.err.startswith(f"error: run {PAUSED} was stored by a newer version of redstart")
        assert "hint: upgrade redstart" in declined.err
    for pool in ("think", "act", "both"):
        with pytest.raises(NewerFormat):
            asyncio.run(go(pool, lambda _: open_app(Settings(home=newer.home)), DriveOrder("home", PAUSED), str))
    with pytest.raises(NewerFormat):
        asyncio.run(house.adapters.store.claim(PAUSED))
    assert query_rows(newer, query, PAUSED) == before
    assert query_rows(newer, "SELECT count(*) FROM told") == [(0,)]


async def test_call_of_a_newer_format_is_declined(user: User, house: AppContext) -> None:
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        database.execute("UPDATE journal SET format = '2.0' WHERE run_id = ? AND step = 'patch'", (FINISHED,))
    with pytest.raises(NewerFormat, match=f"run {FINISHED} was stored by a newer version"):
        await replay(house.adapters, FINISHED)


async def test_run_of_a_newer_minor_format_is_read(user: User, house: AppContext) -> None:
    (text,) = query_rows(user, "SELECT state FROM runs WHERE id = ?", FINISHED)[0]
    state = {**json.loads(text), "format": "1.9", "mood": "calm"}
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        database.execute("UPDATE runs SET state = ? WHERE id = ?", (json.dumps(state), FINISHED))
    read = await house.adapters.store.load(FINISHED)
    assert (read.result, read.unread) == (Result.verified, {"mood": "calm"})
