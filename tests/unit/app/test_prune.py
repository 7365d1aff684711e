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
from redstart.app.wire import create_blob_store, open_database
from redstart.cli.runs import prune as prune_command
from redstart.core.learning import NewMemories
from redstart.core.run import Result, Status, Step, Suite
from redstart.core.run_status import Control, DriveStop
from redstart.core.shell import Environment, Execution
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.prune import SqlPrune
from redstart.ports.sql.schema import blobs, cards, events, failures, journal, runs, steps
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.testing.contracts.store import Clock
from redstart.testing.states import (
    commit,
    make_card,
    make_failure,
    make_signature,
    make_snapshot,
    make_spec,
    make_state,
    record,
)

NOW = 2_000_000_000.0


class Home:
    """A data folder with runs of any age."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.home
        self.folder.mkdir(exist_ok=True)
        self.database = open_database(settings)
        self.blobs = create_blob_store(settings, self.database)
        self.clock = Clock()

    def add_blob(self, data: bytes, *, age: float = 10 * DAY) -> str:
        name = self.blobs.put(data)
        self.set_age(name, age)
        return name

    def set_age(self, name: str, age: float) -> None:
        if self.settings.store.keeps_blobs:
            with self.database.connect_for_writing() as connection:
                connection.execute(update(blobs).where(blobs.c.name == name).values(put=NOW - age))
        else:
            os.utime(self.get_blob_path(name), (NOW - age, NOW - age))

    def get_blob_path(self, name: str) -> Path:
        """Return the path of a blob that is a file."""
        return self.folder / "blobs" / name[:2] / name

    def check_stored(self, names: Iterable[str]) -> list[bool]:
        stored = {item.name for item in self.blobs.list_blobs()}
        return [name in stored for name in names]

    def run(self, run_id: str, days: float, status: Status = Status.finished) -> dict[str, str]:
        """Add a run last changed so many days ago, with a blob wherever a row may name one."""
        self.clock.time = NOW - days * DAY
        kinds = ("first", "artifact", "request", "result", "diff")
        blob_names = {kind: self.add_blob(f"{kind} of {run_id}".encode()) for kind in kinds}
        asyncio.run(self._run(run_id, status, blob_names))
        patch = self.folder / "patches" / f"{run_id}.patch"
        patch.parent.mkdir(exist_ok=True)
        patch.write_text(f"of {run_id}")
        return blob_names

    async def _run(self, run_id: str, status: Status, blob_names: dict[str, str]) -> None:
        store, calls = SqlStore(self.database, self.clock), SqlJournal(self.database)
        new = make_state(run_id=run_id, spec=make_spec(suite=Suite(runner="pytest", environment=blob_names["first"])))
        await store.create(new, folder="/home/shop", created=datetime.fromtimestamp(self.clock.time, UTC))
        claim = await store.claim(run_id)
        call = CallPlace(run_id, 1, "patch", 0)
        await calls.add(
            record(call, request=blob_names["request"], result=f'{{"text": "{blob_names["result"]}"}}'), claim.fence
        )
        memories = NewMemories(card=make_card(f"card of {run_id}"), failure=make_failure(f"failure of {run_id}"))
        outcome_fields = {"status": status, "result": Result.verified if status is Status.finished else None}
        artifact = f'{{"diff": "{blob_names["artifact"]}"}}'
        draft = make_snapshot(diff=blob_names["diff"])
        final_commit = commit(new, Step.remember, artifact=artifact, remembered=memories, draft=draft, **outcome_fields)
        await store.commit(final_commit, claim.fence)

    def list_run_ids(self) -> dict[str, set[str]]:
        """Return the IDs of the runs that each table still holds."""
        columns = {"runs": runs.c.id} | {table.name: table.c.run_id for table in (steps, events, journal)}
        with self.database.connect_for_reading() as connection:
            return {name: set(connection.execute(select(column)).scalars()) for name, column in columns.items()}

    def count_learned(self) -> int:
        with self.database.connect_for_reading() as connection:
            return sum(connection.execute(select(func.count()).select_from(t)).scalar_one() for t in (cards, failures))

    def list_files(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}

    def prune(self, days: float = 30, keep: int = 0, dry: bool = False) -> PruneReport:
        return asyncio.run(prune(self.settings, days=days, keep=keep, dry=dry, now=NOW))


def expect_all_rows(run_id: str) -> dict[str, set[str]]:
    return {table: {run_id} for table in ("runs", "steps", "events", "journal")}


@pytest.fixture(params=["folder", "database", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    url = request.getfixturevalue("new_postgres")() if request.param == "postgres" else ""
    store = StoreSettings(url=url, blobs="" if url else request.param)
    new_home = Home(Settings(home=tmp_path / "home", store=store))
    yield new_home
    new_home.database.close()


def test_old_run_is_deleted_with_all_its_data(home: Home):
    old, new = home.run("old", 31), home.run("new", 29)
    prune_report = home.prune()
    assert prune_report.runs == ("old",)
    assert home.list_run_ids() == expect_all_rows("new")
    assert home.check_stored(old.values()) == [False] * len(old)
    assert home.check_stored(new.values()) == [True] * len(new)
    assert [path.name for path in (home.folder / "patches").iterdir()] == ["new.patch"]
    assert (prune_report.blobs, prune_report.patches) == (len(old), 1)
    assert prune_report.size == sum(len(f"{kind} of old") for kind in old) + len("of old")
    assert home.prune() == PruneReport()


def test_learned_data_is_kept(home: Home):
    home.run("old", 100)
    home.prune()
    assert home.count_learned() == 2
    recalled_cards = asyncio.run(SqlMemory(home.database).recall(make_signature(), tenant="home", repo="shop"))
    assert [item.card.id for item in recalled_cards] == ["card of old"]


def assert_untouched(home: Home, blob_names: dict[str, str]) -> None:
    files_before = home.list_files()
    assert home.prune(days=0) == PruneReport()
    assert home.list_run_ids() == expect_all_rows("on")
    assert home.list_files() == files_before
    assert all(home.check_stored(blob_names.values()))


def test_driven_run_is_never_deleted(home: Home):
    blob_names = home.run("on", 1000, Status.running)
    home.clock.time = NOW
    asyncio.run(SqlStore(home.database, home.clock).renew("on", 1))
    assert_untouched(home, blob_names)


@pytest.mark.parametrize("stop", [None, DriveStop(Status.queued)])
def test_waiting_run_is_never_deleted(home: Home, stop):
    blob_names = home.run("on", 1000, Status.running if stop else Status.needs_input)
    asyncio.run(SqlStore(home.database, home.clock).release("on", 1, stop))
    assert_untouched(home, blob_names)


@pytest.mark.parametrize("how", ["dead", "failed", "cancelled", "paused"])
def test_abandoned_run_is_deleted(home: Home, how):
    home.run("old", 31, Status.paused if how == "paused" else Status.running)
    store = SqlStore(home.database, home.clock)
    if how == "failed":
        asyncio.run(store.release("old", 1, DriveStop(Status.failed, "401")))
    if how == "cancelled":
        asyncio.run(store.release("old", 1))
        asyncio.run(store.control("old", Control.cancel))
    assert home.prune().runs == ("old",)
    assert home.list_run_ids() == {table: set() for table in expect_all_rows("old")}


def test_unfinished_child_run_is_deleted_with_its_parent(home: Home):
    home.run("on", 40, Status.needs_input)
    home.run("on.1", 40, Status.running)
    home.run("off", 40, Status.running)
    home.run("off.1", 40, Status.running)
    assert set(home.prune().runs) == {"off", "off.1"}


def test_newest_runs_are_kept_regardless_of_age(home: Home):
    for days in (40, 50, 60, 70):
        home.run(f"run-{days}", days)
    home.run("on", 1, Status.needs_input)
    assert home.prune(keep=3).runs == ("run-70",)
    assert home.prune(keep=1).runs == ("run-60", "run-50")
    assert home.list_run_ids()["runs"] == {"run-40", "on"}
    assert home.prune(keep=0).runs == ("run-40",)


@pytest.mark.slow
def test_dry_run_reports_the_same_and_changes_nothing(home: Home):
    home.run("old", 31)
    home.run("new", 1)
    dead_folder = home.folder / "snapshots" / "work" / f"{get_ended_pid()}-x"
    dead_folder.mkdir(parents=True)
    before, rows = home.list_files(), home.list_run_ids()
    dry_report = home.prune(dry=True)
    assert (home.list_files(), home.list_run_ids(), dead_folder.exists()) == (before, rows, True)
    assert dry_report == home.prune()
    assert dry_report.runs == ("old",)
    assert dry_report.blobs > 0


def test_blob_shared_with_a_remaining_run_is_kept(home: Home):
    old = home.run("old", 31)
    new = home.run("new", 1)
    request = Execution(
        argv=("true",),
        snapshot=make_snapshot(pack=old["first"], diff=old["artifact"]),
        environment=Environment(mount="/x", python="/usr/bin/python3"),
    )
    fence = asyncio.run(SqlStore(home.database, home.clock).claim("new")).fence
    request_name = home.add_blob(request.model_dump_json().encode())
    call = CallPlace("new", 1, "test", 0)
    asyncio.run(SqlJournal(home.database).add(record(call, kind="sandbox", request=request_name), fence))
    home.prune()
    assert home.check_stored([request_name]) == [True]
    assert home.check_stored([old["first"]]) == [True], "the pack of a recorded execution's snapshot"
    assert home.check_stored([old["artifact"]]) == [True], "its diff"
    assert home.check_stored([old["request"]]) == [False]
    assert all(home.check_stored(new.values()))


def test_fresh_blob_is_kept_for_an_uncommitted_step(home: Home):
    fresh, stale = home.add_blob(b"fresh", age=3500), home.add_blob(b"stale", age=3700)
    home.prune()
    assert home.check_stored([fresh, stale]) == [True, False]


def test_partial_files_are_deleted_and_foreign_files_are_kept(tmp_path: Path):
    home = Home(Settings(home=tmp_path / "home"))
    stale = home.add_blob(b"stale")
    partial_file = home.get_blob_path(stale).with_name(".new-abc")
    foreign = home.get_blob_path(stale).with_name("README")
    for item in (partial_file, foreign):
        item.write_bytes(b"some")
        os.utime(item, (NOW - DAY, NOW - DAY))
    home.prune()
    home.database.close()
    assert [partial_file.exists(), foreign.exists()] == [False, True]


def test_runs_and_blobs_of_another_tenant_are_not_touched(home: Home):
    own_blobs = home.run("old", 100)
    other_settings = home.settings.model_copy(update={"tenant": "other"})
    assert asyncio.run(prune(other_settings, days=0, keep=0, dry=False, now=NOW)) == PruneReport()
    assert home.list_run_ids() == expect_all_rows("old")
    assert all(home.check_stored(own_blobs.values()))


def get_ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.slow
def test_work_directories_of_ended_processes_are_deleted(home: Home):
    work = home.folder / "snapshots" / "work"
    for name in (f"{os.getpid()}-mine", f"{get_ended_pid()}-dead", f"{'9' * 30}-never", "somebody-else"):
        (work / name).mkdir(parents=True)
        (work / name / "file").write_text("x")
    assert home.prune().folders == 2
    assert sorted(path.name for path in work.iterdir()) == sorted([f"{os.getpid()}-mine", "somebody-else"])


def test_missing_data_directory_is_not_created(tmp_path: Path):
    assert asyncio.run(prune(Settings(home=tmp_path / "none"), days=30, keep=0, dry=False, now=NOW)) == PruneReport()
    assert list(tmp_path.iterdir()) == []


def test_many_runs_are_deleted_together(home: Home):
    async def create_many() -> None:
        store = SqlStore(home.database, home.clock)
        for number in range(300):
            new = make_state(run_id=f"run-{number:04}", status=Status.finished, result=Result.verified)
            await store.create(new, folder="/home/shop", created=datetime.fromtimestamp(number, UTC))

    asyncio.run(create_many())
    prune_result = asyncio.run(
        SqlPrune(home.database).prune(NOW, 10, is_over=lambda row: row.status is Status.finished)
    )
    assert len(prune_result.runs) == 290
    assert prune_result.runs[0] == "run-0000"
    assert min(home.list_run_ids()["runs"]) == "run-0290"


def test_command_summarizes_what_it_deleted(home: Home, monkeypatch):
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
    assert home.list_run_ids()["runs"] == set()
