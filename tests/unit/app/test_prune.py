"""Old runs are removed with all data that is theirs alone; data that others need stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from sqlalchemy import func, select, update
from typer.testing import CliRunner

from redstart.app.prune import DAY, PruneReport, prune
from redstart.app.settings import Settings
from redstart.app.settings.store import StoreSettings
from redstart.app.wire import blobs_of, open_database
from redstart.cli.runs import prune as prune_command
from redstart.core.learning import NewMemories
from redstart.core.run import Result, Status, Step, Suite
from redstart.core.shell import Environment, Execution
from redstart.core.standing import Control, DriveStop
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.prune import SqlPrune
from redstart.ports.sql.schema import blobs, cards, events, failures, journal, runs, steps
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.testing.contracts.store import Clock
from redstart.testing.states import card, commit, failure, record, signature, snapshot, spec, state

NOW = 2_000_000_000.0


class Home:
    """A data folder with runs of any age."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.home
        self.folder.mkdir(exist_ok=True)
        self.database = open_database(settings)
        self.blobs = blobs_of(settings, self.database)
        self.clock = Clock()

    def blob(self, data: bytes, *, age: float = 10 * DAY) -> str:
        name = self.blobs.put(data)
        self.age(name, age)
        return name

    def age(self, name: str, age: float) -> None:
        if self.settings.store.keeps_blobs:
            with self.database.writing() as connection:
                connection.execute(update(blobs).where(blobs.c.name == name).values(put=NOW - age))
        else:
            os.utime(self.path(name), (NOW - age, NOW - age))

    def path(self, name: str) -> Path:
        """Return the path of a blob that is a file."""
        return self.folder / "blobs" / name[:2] / name

    def there(self, names: Iterable[str]) -> list[bool]:
        kept = {item.name for item in self.blobs.kept()}
        return [name in kept for name in names]

    def run(self, run_id: str, days: float, status: Status = Status.finished) -> dict[str, str]:
        """Add a run last changed so many days ago, with a blob wherever a row may name one."""
        self.clock.time = NOW - days * DAY
        kinds = ("first", "artifact", "request", "result", "diff")
        named = {kind: self.blob(f"{kind} of {run_id}".encode()) for kind in kinds}
        asyncio.run(self._run(run_id, status, named))
        patch = self.folder / "patches" / f"{run_id}.patch"
        patch.parent.mkdir(exist_ok=True)
        patch.write_text(f"of {run_id}")
        return named

    async def _run(self, run_id: str, status: Status, named: dict[str, str]) -> None:
        store, calls = SqlStore(self.database, self.clock), SqlJournal(self.database)
        new = state(run_id=run_id, spec=spec(suite=Suite(runner="pytest", environment=named["first"])))
        await store.create(new, folder="/home/shop", created=datetime.fromtimestamp(self.clock.time, UTC))
        claimed = await store.claim(run_id)
        call = CallPlace(run_id, 1, "patch", 0)
        await calls.add(
            record(call, request=named["request"], result=f'{{"text": "{named["result"]}"}}'), claimed.fence
        )
        left = NewMemories(card=card(f"card of {run_id}"), failure=failure(f"failure of {run_id}"))
        ended = {"status": status, "result": Result.verified if status is Status.finished else None}
        artifact = f'{{"diff": "{named["artifact"]}"}}'
        draft = snapshot(diff=named["diff"])
        done = commit(new, Step.remember, artifact=artifact, remembered=left, draft=draft, **ended)
        await store.commit(done, claimed.fence)

    def rows(self) -> dict[str, set[str]]:
        """Return the IDs of the runs that each table still holds."""
        of_run = {"runs": runs.c.id} | {table.name: table.c.run_id for table in (steps, events, journal)}
        with self.database.reading() as connection:
            return {name: set(connection.execute(select(column)).scalars()) for name, column in of_run.items()}

    def learned(self) -> int:
        with self.database.reading() as connection:
            return sum(connection.execute(select(func.count()).select_from(t)).scalar_one() for t in (cards, failures))

    def files(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}

    def prune(self, days: float = 30, keep: int = 0, dry: bool = False) -> PruneReport:
        return asyncio.run(prune(self.settings, days=days, keep=keep, dry=dry, now=NOW))


def all_of(run_id: str) -> dict[str, set[str]]:
    return {table: {run_id} for table in ("runs", "steps", "events", "journal")}


@pytest.fixture(params=["folder", "database", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    url = request.getfixturevalue("new_postgres")() if request.param == "postgres" else ""
    store = StoreSettings(url=url, blobs="" if url else request.param)
    made = Home(Settings(home=tmp_path / "home", store=store))
    yield made
    made.database.close()


def test_an_old_run_goes_with_all_that_is_its_own(home: Home):
    old, new = home.run("old", 31), home.run("new", 29)
    swept = home.prune()
    assert swept.runs == ("old",)
    assert home.rows() == all_of("new")
    assert home.there(old.values()) == [False] * len(old)
    assert home.there(new.values()) == [True] * len(new)
    assert [path.name for path in (home.folder / "patches").iterdir()] == ["new.patch"]
    assert (swept.blobs, swept.patches) == (len(old), 1)
    assert swept.size == sum(len(f"{kind} of old") for kind in old) + len("of old")
    assert home.prune() == PruneReport()


def test_what_was_learned_stays(home: Home):
    home.run("old", 100)
    home.prune()
    assert home.learned() == 2
    recalled = asyncio.run(SqlMemory(home.database).recall(signature(), tenant="home", repo="shop"))
    assert [item.card.id for item in recalled] == ["card of old"]


def left_alone(home: Home, named: dict[str, str]) -> None:
    before = home.files()
    assert home.prune(days=0) == PruneReport()
    assert home.rows() == all_of("on")
    assert home.files() == before
    assert all(home.there(named.values()))


def test_a_run_that_somebody_drives_is_never_touched(home: Home):
    named = home.run("on", 1000, Status.running)
    home.clock.time = NOW
    asyncio.run(SqlStore(home.database, home.clock).renew("on", 1))
    left_alone(home, named)


@pytest.mark.parametrize("stop", [None, DriveStop(Status.queued)])
def test_a_run_that_waits_for_somebody_is_never_touched(home: Home, stop):
    named = home.run("on", 1000, Status.running if stop else Status.needs_input)
    asyncio.run(SqlStore(home.database, home.clock).release("on", 1, stop))
    left_alone(home, named)


@pytest.mark.parametrize("how", ["dead", "failed", "cancelled", "paused"])
def test_a_run_that_nobody_drives_any_more_goes(home: Home, how):
    home.run("old", 31, Status.paused if how == "paused" else Status.running)
    store = SqlStore(home.database, home.clock)
    if how == "failed":
        asyncio.run(store.release("old", 1, DriveStop(Status.failed, "401")))
    if how == "cancelled":
        asyncio.run(store.release("old", 1))
        asyncio.run(store.control("old", Control.cancel))
    assert home.prune().runs == ("old",)
    assert home.rows() == {table: set() for table in all_of("old")}


def test_a_child_run_that_has_not_finished_goes_with_its_parent(home: Home):
    home.run("on", 40, Status.needs_input)
    home.run("on.1", 40, Status.running)
    home.run("off", 40, Status.running)
    home.run("off.1", 40, Status.running)
    assert set(home.prune().runs) == {"off", "off.1"}


def test_the_newest_are_kept_however_old(home: Home):
    for days in (40, 50, 60, 70):
        home.run(f"run-{days}", days)
    home.run("on", 1, Status.needs_input)
    assert home.prune(keep=3).runs == ("run-70",)
    assert home.prune(keep=1).runs == ("run-60", "run-50")
    assert home.rows()["runs"] == {"run-40", "on"}
    assert home.prune(keep=0).runs == ("run-40",)


@pytest.mark.slow
def test_a_dry_run_tells_the_same_and_changes_nothing(home: Home):
    home.run("old", 31)
    home.run("new", 1)
    dead = home.folder / "snapshots" / "work" / f"{ended_process()}-x"
    dead.mkdir(parents=True)
    before, rows = home.files(), home.rows()
    told = home.prune(dry=True)
    assert (home.files(), home.rows(), dead.exists()) == (before, rows, True)
    assert told == home.prune()
    assert told.runs == ("old",)
    assert told.blobs > 0


def test_a_blob_that_a_run_which_stays_shares_is_kept(home: Home):
    old = home.run("old", 31)
    new = home.run("new", 1)
    request = Execution(
        argv=("true",),
        snapshot=snapshot(pack=old["first"], diff=old["artifact"]),
        environment=Environment(mount="/x", python="/usr/bin/python3"),
    )
    fence = asyncio.run(SqlStore(home.database, home.clock).claim("new")).fence
    named = home.blob(request.model_dump_json().encode())
    call = CallPlace("new", 1, "test", 0)
    asyncio.run(SqlJournal(home.database).add(record(call, kind="sandbox", request=named), fence))
    home.prune()
    assert home.there([named]) == [True]
    assert home.there([old["first"]]) == [True], "the pack of a recorded execution's snapshot"
    assert home.there([old["artifact"]]) == [True], "its diff"
    assert home.there([old["request"]]) == [False]
    assert all(home.there(new.values()))


def test_a_fresh_blob_may_belong_to_a_step_that_is_not_committed_yet(home: Home):
    fresh, stale = home.blob(b"fresh", age=3500), home.blob(b"stale", age=3700)
    home.prune()
    assert home.there([fresh, stale]) == [True, False]


def test_what_is_half_written_goes_and_what_is_not_ours_stays(tmp_path: Path):
    home = Home(Settings(home=tmp_path / "home"))
    stale = home.blob(b"stale")
    half = home.path(stale).with_name(".new-abc")
    foreign = home.path(stale).with_name("README")
    for item in (half, foreign):
        item.write_bytes(b"some")
        os.utime(item, (NOW - DAY, NOW - DAY))
    home.prune()
    home.database.close()
    assert [half.exists(), foreign.exists()] == [False, True]


def test_another_tenants_runs_and_blobs_are_not_touched(home: Home):
    mine = home.run("old", 100)
    asked = home.settings.model_copy(update={"tenant": "other"})
    assert asyncio.run(prune(asked, days=0, keep=0, dry=False, now=NOW)) == PruneReport()
    assert home.rows() == all_of("old")
    assert all(home.there(mine.values()))


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.slow
def test_work_folders_go_with_their_process(home: Home):
    work = home.folder / "snapshots" / "work"
    for name in (f"{os.getpid()}-mine", f"{ended_process()}-dead", f"{'9' * 30}-never", "somebody-else"):
        (work / name).mkdir(parents=True)
        (work / name / "file").write_text("x")
    assert home.prune().folders == 2
    assert sorted(path.name for path in work.iterdir()) == sorted([f"{os.getpid()}-mine", "somebody-else"])


def test_where_there_is_no_data_nothing_is_made(tmp_path: Path):
    assert asyncio.run(prune(Settings(home=tmp_path / "none"), days=30, keep=0, dry=False, now=NOW)) == PruneReport()
    assert list(tmp_path.iterdir()) == []


def test_many_runs_go_at_once(home: Home):
    async def many() -> None:
        store = SqlStore(home.database, home.clock)
        for number in range(300):
            new = state(run_id=f"run-{number:04}", status=Status.finished, result=Result.verified)
            await store.create(new, folder="/home/shop", created=datetime.fromtimestamp(number, UTC))

    asyncio.run(many())
    pruned = asyncio.run(SqlPrune(home.database).prune(NOW, 10, is_over=lambda row: row.status is Status.finished))
    assert len(pruned.runs) == 290
    assert pruned.runs[0] == "run-0000"
    assert min(home.rows()["runs"]) == "run-0290"


def test_the_command_says_what_it_did(home: Home, monkeypatch):
    monkeypatch.setenv("REDSTART_HOME", str(home.folder))
    monkeypatch.setenv("REDSTART_STORE__URL", home.settings.store.url)
    monkeypatch.setenv("REDSTART_STORE__BLOBS", home.settings.store.blobs)
    days = (NOW - time.time()) / DAY
    home.run("old", days + 31)
    app = typer.Typer()
    app.command()(prune_command)
    dry = CliRunner().invoke(app, ["--dry-run"])
    assert (dry.exit_code, dry.output.startswith("would remove 1 run,")) == (0, True)
    assert CliRunner().invoke(app, ["--older-than", "60"]).output.startswith("removed 0 runs")
    assert CliRunner().invoke(app, ["--keep", "1"]).output.startswith("removed 0 runs")
    assert CliRunner().invoke(app, []).output.startswith("removed 1 run,")
    assert home.rows()["runs"] == set()
