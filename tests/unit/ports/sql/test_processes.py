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
from redstart.testing.states import make_state

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
from redstart.testing.states import commit, make_card, record

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
            await store.commit(commit(mine, artifact=f'"{name}"', remembered=NewMemories(card=make_card())), fence)
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
    processes: list[subprocess.Popen[str]] = []

    def start_process(code: str, *args: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", code, *map(str, args)]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield start_process
    for process in processes:
        process.kill()
        with process:
            pass


def read_until(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout
    for output_line in process.stdout:
        if output_line.strip() == line:
            return
    pytest.fail(f"the process ended without printing {line}")


def read_rest(process: subprocess.Popen[str]) -> str:
    """Read its output to the end, for at most a minute. `communicate` would lose what `read_until` has read ahead."""
    assert process.stdout
    timer = threading.Timer(60, process.kill)
    timer.start()
    output = process.stdout.read()
    process.wait()
    timer.cancel()
    return output


@pytest.fixture
def begun(made: Path | str) -> Path | str:
    """Create a database with one run; return its location."""
    with Database.open(made) as database:
        asyncio.run(SqlStore(database, lambda: 0.0).create(make_state(), folder="/home/shop", created=DAWN))
    return made


async def load_consistent(where: Path | str) -> tuple[RunState, list[StepRow]]:
    """Load the run and its steps, and check that state, steps and events agree."""

    async def load_and_check(store: SqlStore) -> tuple[RunState, list[StepRow]]:
        run_state, steps, events = (
            await store.load("run-1"),
            await store.list_steps("run-1"),
            await store.list_events("run-1"),
        )
        assert [row.version for row in steps] == list(range(1, run_state.version + 1))
        assert steps[-1].state == run_state
        assert [event.seq for event in events] == list(range(run_state.seq))
        assert run_state.seq == 3 * run_state.version
        return run_state, steps

    with Database.open(where) as database:
        if not database.is_postgres:
            with database.connect_for_reading() as connection:
                assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        return await load_and_check(SqlStore(database, lambda: 0.0))


def test_concurrent_processes_create_one_database(start: Start, where: Path | str) -> None:
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
    with Database.open(where) as database, database.connect_for_reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [HEAD]


async def test_driver_that_lost_its_run_writes_nothing(start: Start, begun: Path | str) -> None:
    old = start(DRIVER, begun, "old", ENDLESS)
    read_until(old, "5")
    new = start(DRIVER, begun, "new", 20)
    output = read_rest(old)
    new.communicate(timeout=300)
    assert old.returncode == new.returncode == 0
    assert output.splitlines()[-2:] == ["fenced", "fenced again"]

    _, steps = await load_consistent(begun)
    writers = [row.artifact for row in steps]
    assert writers == ['"old"'] * (len(steps) - 20) + ['"new"'] * 20
    committed_count = max(int(line) for line in ["5", *output.split()] if line.isdigit())
    assert committed_count == len(steps) - 20, "every step reported as committed is stored"

    with Database.open(begun) as database:
        records = await SqlJournal(database).list_records("run-1")
        with database.connect_for_reading() as connection:
            assert connection.execute(text("SELECT count(*) FROM cards")).scalar() == 0
    # The old driver may have recorded the call of a step that it could no longer commit.
    assert [record.result for record in records if record.call.attempt == 2] == ["new"] * 20
    assert [record.result for record in records if record.call.attempt == 1] in (
        ["old"] * committed_count,
        ["old"] * (committed_count + 1),
    )


@pytest.mark.parametrize("killed_after", [1, 100])
async def test_killed_driver_leaves_only_complete_steps(start: Start, begun: Path | str, killed_after: int) -> None:
    driver = start(DRIVER, begun, "killed", ENDLESS)
    read_until(driver, str(killed_after))
    driver.kill()
    output = read_rest(driver)
    reported = max([killed_after, *(int(line) for line in output.split() if line.isdigit())])

    run_state, _ = await load_consistent(begun)
    assert run_state.version in (reported, reported + 1), "a step may be committed and not reported, never the reverse"

    next_driver = start(DRIVER, begun, "heir", 3)
    next_driver.communicate(timeout=300)
    assert next_driver.returncode == 0
    assert (await load_consistent(begun))[0].version == run_state.version + 3
