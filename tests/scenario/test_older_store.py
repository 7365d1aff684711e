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
from redstart.app.wire import AppContext, open_house
from redstart.app.worker import go
from redstart.core.errors import ModelError, NewerFormat, ReplayDiverged
from redstart.core.formats import this_version
from redstart.core.run import Result, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
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
    with open_house(Settings(home=user.home)) as opened:
        yield opened


def rows_of(user: User, query: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        return database.execute(query, values).fetchall()


def test_the_fixtures_name_no_machine(user: User) -> None:
    files = [path for path in (*user.home.rglob("*"), FIXTURES / "cassette.json") if path.is_file()]
    assert len(files) > 50
    found = [re.findall(rb"/(?:root|tmp|work|home/(?!redstart\b)\w+)/", path.read_bytes()) for path in files]
    assert [hits for hits in found if hits] == []


def test_its_runs_are_listed_and_shown(user: User) -> None:
    listed = user.redstart("runs", "list", "--json").events
    assert {row["run_id"]: row["status"] for row in listed} == {
        FINISHED: "finished",
        PAUSED: "paused",
        ASKS: "needs_input",
    }
    shown = user.redstart("show", FINISHED)
    assert shown.code == 0, shown.err
    assert "verified: 1 failing test now passes" in shown.out
    assert "+    return number + number\n" in shown.out
    attempt = json.loads(user.redstart("show", FINISHED, "--attempt", "1", "--json").out)
    assert attempt["outcome"] == "the target test still fails"
    assert "It gives 4 for 2, as a test expects" in user.redstart("show", ASKS).out


@pytest.mark.parametrize("run_id", [FINISHED, PAUSED, ASKS])
def test_its_runs_are_replayed(user: User, run_id: str) -> None:
    replayed = user.redstart("runs", "replay", run_id)
    assert replayed.code == 0, replayed.err
    assert "as recorded, 0 tokens spent" in replayed.out


def test_its_paused_run_is_resumed_and_replayed(user: User) -> None:
    with ScriptedServer(lambda request: play.CARD) as server:
        user.uses(server, Wire.openai)
        resumed = user.redstart("resume", PAUSED, "-m", "openai:scripted", "--json", "--unsafe-no-sandbox")
    assert resumed.code == 0, resumed.err
    assert resumed.ending["result"] == "verified"
    assert {event["name"] for event in resumed.events} == AFTER_TEST | {"run"}
    by = rows_of(user, "SELECT DISTINCT format, recorded_by FROM journal WHERE run_id = ? ORDER BY 1", PAUSED)
    assert by == [("", ""), ("1.0", this_version())]
    assert user.redstart("runs", "replay", PAUSED).code == 0


def test_its_question_is_answered(user: User) -> None:
    with ScriptedServer(lambda request: play.CARD) as server:
        user.uses(server, Wire.openai)
        resumed = user.redstart("resume", ASKS, "-m", "openai:scripted", "--accept", "--json", "--unsafe-no-sandbox")
    assert resumed.code == 0, resumed.err
    assert resumed.ending["result"] == "verified"


def test_its_cassette_answers_a_run(tmp_path: Path) -> None:
    rig = make_rig(tmp_path / "snapshots")
    rig.adapters = replace(rig.adapters, model=ReplayModel(Cassette.load(FIXTURES / "cassette.json")))

    async def go_on() -> Result | None:
        claim = await rig.adapters.store.claim(await rig.begin())
        return (await drive(rig.adapters, claim, inline)).state.result

    assert asyncio.run(go_on()) is Result.verified
    rig.trees.close()


def test_a_cassette_that_asks_otherwise_now_says_who_recorded_it(tmp_path: Path) -> None:
    written = json.loads((FIXTURES / "cassette.json").read_text())
    written["calls"]["1/patch/0"]["messages"][0]["text"] = "redstart question: patch\nSing."
    (tmp_path / "other.json").write_text(json.dumps(written))
    rig = make_rig(tmp_path / "snapshots")
    rig.adapters = replace(rig.adapters, model=ReplayModel(Cassette.load(tmp_path / "other.json")))

    async def go_on() -> None:
        await drive(rig.adapters, await rig.adapters.store.claim(await rig.begin()), inline)

    recorded = f"made by an earlier version, and version {this_version()} asks different questions"
    with pytest.raises(ModelError, match=recorded):
        asyncio.run(go_on())
    rig.trees.close()


def test_a_run_whose_prompts_changed_says_who_recorded_it(house: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = STEPS[Step.patch]

    async def asking_otherwise(run: Any, ports: Any) -> Any:
        class Model:
            async def ask(self, ask: Any) -> Any:
                return await ports.model.ask(ask.model_copy(update={"max_tokens": 7}))

        return await patch(run, replace(ports, model=Model()))

    monkeypatch.setitem(STEPS, Step.patch, asking_otherwise)
    with pytest.raises(ReplayDiverged) as raised:
        asyncio.run(replay(house.adapters, FINISHED))
    assert str(raised.value) == (
        f"run {FINISHED} was recorded by an earlier version; version {this_version()} differs at "
        "attempt 1, patch, call 0 (model): its request differs from the one recorded"
    )
    assert raised.value.remedy == "replay it with an earlier version"


@pytest.fixture
def newer(user: User, house: AppContext) -> User:
    """Return the same user after a newer version continued the paused run."""
    state = json.dumps({"format": "2.0", "run_id": PAUSED, "shape": "unknown here"})
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        database.execute("UPDATE runs SET state = ? WHERE id = ?", (state, PAUSED))
    return user


def test_a_run_of_a_newer_format_is_declined_and_left_as_it_is(newer: User, house: AppContext) -> None:
    everything = "SELECT * FROM runs WHERE id = ?"
    before = rows_of(newer, everything, PAUSED)
    listed = {row["run_id"]: row for row in newer.redstart("runs", "list", "--json").events}
    assert listed.keys() == {FINISHED, PAUSED, ASKS}
    assert listed[PAUSED]["reason"].startswith(f"run {PAUSED} was stored by a newer version of redstart")
    for command in ("show", "resume"):
        declined = newer.redstart(command, PAUSED)
        assert declined.code == 3
        assert declined.err.startswith(f"error: run {PAUSED} was stored by a newer version of redstart")
        assert "hint: upgrade redstart" in declined.err
    for pool in ("think", "act", "both"):
        with pytest.raises(NewerFormat):
            asyncio.run(go(pool, lambda _: open_house(Settings(home=newer.home)), DriveOrder("home", PAUSED), str))
    with pytest.raises(NewerFormat):
        asyncio.run(house.adapters.store.claim(PAUSED))
    assert rows_of(newer, everything, PAUSED) == before
    assert rows_of(newer, "SELECT count(*) FROM told") == [(0,)]


def test_a_call_of_a_newer_format_is_declined(user: User, house: AppContext) -> None:
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        database.execute("UPDATE journal SET format = '2.0' WHERE run_id = ? AND step = 'patch'", (FINISHED,))
    with pytest.raises(NewerFormat, match=f"run {FINISHED} was stored by a newer version"):
        asyncio.run(replay(house.adapters, FINISHED))


def test_a_run_of_a_newer_minor_format_is_read(user: User, house: AppContext) -> None:
    (text,) = rows_of(user, "SELECT state FROM runs WHERE id = ?", FINISHED)[0]
    state = {**json.loads(text), "format": "1.9", "mood": "calm"}
    with closing(sqlite3.connect(user.home / "redstart.db")) as database, database:
        database.execute("UPDATE runs SET state = ? WHERE id = ?", (json.dumps(state), FINISHED))
    read = asyncio.run(house.adapters.store.load(FINISHED))
    assert (read.result, read.unread) == (Result.verified, {"mood": "calm"})
