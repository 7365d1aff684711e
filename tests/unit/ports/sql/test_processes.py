"""What a single process cannot show: races, takeovers and sudden deaths."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from sqlalchemy import text

from redstart.core.run import RunState
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.schema import HEAD
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.runs import StepRow
from redstart.testing.contracts.store import DAWN
from redstart.testing.states import state

pytestmark = pytest.mark.slow

OPENER = """
import sys
from pathlib import Path
from redstart.ports.sql.engine import Database
import redstart.ports.sql.migrations
print("ready", flush=True)
sys.stdin.readline()
where = sys.argv[1]
Database.open(where if "://" in where else Path(where)).close()
"""

DRIVER = """
import asyncio, sys
from pathlib import Path
from redstart.core.errors import Fenced
from redstart.core.learning import NewMemories
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.testing.states import card, commit, record

async def drive(store, journal, name, count):
    state, fence = await store.claim("run-1")
    print("claimed", flush=True)
    try:
        for number in range(count):
            call = CallPlace("run-1", fence, "patch", number)
            await journal.add(record(call, result=name), fence)
            done = commit(state, artifact=f'"{name}"', events=3)
            await store.commit(done, fence)
            state = done.after
            print(state.version, flush=True)
    except Fenced:
        print("fenced", flush=True)
        mine = await store.load("run-1")
        try:
            await store.commit(commit(mine, artifact=f'"{name}"', remembered=NewMemories(card=card())), fence)
        except Fenced:
            print("fenced again", flush=True)

where = sys.argv[1]
with Database.open(where if "://" in where else Path(where)) as database:
    asyncio.run(drive(SqlStore(database, lambda: 0.0), SqlJournal(database), sys.argv[2], int(sys.argv[3])))
"""

ENDLESS = 1_000_000


class Start(Protocol):
    def __call__(self, code: str, *args: object) -> subprocess.Popen[str]: ...


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python with this code; processes still alive at the end of the test are killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, *args: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", code, *map(str, args)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        with process:
            pass


def read_until(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout
    for said in process.stdout:
        if said.strip() == line:
            return
    pytest.fail(f"the process ended without printing {line}")


def read_rest(process: subprocess.Popen[str]) -> str:
    """Read its output to the end, for at most a minute. `communicate` would lose what `read_until` has read ahead."""
    assert process.stdout
    late = threading.Timer(60, process.kill)
    late.start()
    said = process.stdout.read()
    process.wait()
    late.cancel()
    return said


@pytest.fixture
def begun(made: Path | str) -> Path | str:
    """Create a database with one run; return its location."""
    with Database.open(made) as database:
        asyncio.run(SqlStore(database, lambda: 0.0).create(state(), folder="/home/shop", created=DAWN))
    return made


def consistent(where: Path | str) -> tuple[RunState, list[StepRow]]:
    """Load the run and its steps, and check that state, steps and events agree."""

    async def look(store: SqlStore) -> tuple[RunState, list[StepRow]]:
        now, steps, events = await store.load("run-1"), await store.steps("run-1"), await store.events("run-1")
        assert [row.version for row in steps] == list(range(1, now.version + 1))
        assert steps[-1].state == now
        assert [event.seq for event in events] == list(range(now.seq))
        assert now.seq == 3 * now.version
        return now, steps

    with Database.open(where) as database:
        if not database.is_postgres:
            with database.reading() as connection:
                assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        return asyncio.run(look(SqlStore(database, lambda: 0.0)))


def test_processes_that_find_no_database_make_one_together(start: Start, where: Path | str) -> None:
    openers = [start(OPENER, where) for _ in range(4)]
    for opener in openers:
        read_until(opener, "ready")
    for opener in openers:
        assert opener.stdin
        opener.stdin.write("\n")
        opener.stdin.flush()
    for opener in openers:
        opener.communicate(timeout=300)
    assert [opener.returncode for opener in openers] == [0, 0, 0, 0]
    with Database.open(where) as database, database.reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [HEAD]


def test_a_driver_that_lost_its_run_writes_nothing_more(start: Start, begun: Path | str) -> None:
    old = start(DRIVER, begun, "old", ENDLESS)
    read_until(old, "5")
    new = start(DRIVER, begun, "new", 20)
    said = read_rest(old)
    new.communicate(timeout=300)
    assert old.returncode == new.returncode == 0
    assert said.splitlines()[-2:] == ["fenced", "fenced again"]

    _, steps = consistent(begun)
    writers = [row.artifact for row in steps]
    assert writers == ['"old"'] * (len(steps) - 20) + ['"new"'] * 20
    committed = max(int(line) for line in ["5", *said.split()] if line.isdigit())
    assert committed == len(steps) - 20, "every step reported as committed is stored"

    with Database.open(begun) as database:
        records = asyncio.run(SqlJournal(database).records("run-1"))
        with database.reading() as connection:
            assert connection.execute(text("SELECT count(*) FROM cards")).scalar() == 0
    # The old driver may have recorded the call of a step that it could no longer commit.
    assert [record.result for record in records if record.call.attempt == 2] == ["new"] * 20
    assert [record.result for record in records if record.call.attempt == 1] in (
        ["old"] * committed,
        ["old"] * (committed + 1),
    )


@pytest.mark.parametrize("after", [1, 100])
def test_a_driver_that_is_killed_leaves_whole_steps(start: Start, begun: Path | str, after: int) -> None:
    driver = start(DRIVER, begun, "killed", ENDLESS)
    read_until(driver, str(after))
    driver.kill()
    said = read_rest(driver)
    reported = max([after, *(int(line) for line in said.split() if line.isdigit())])

    now, _ = consistent(begun)
    assert now.version in (reported, reported + 1), "a step may be committed and not reported, never the reverse"

    heir = start(DRIVER, begun, "heir", 3)
    heir.communicate(timeout=300)
    assert heir.returncode == 0
    assert consistent(begun)[0].version == now.version + 3
