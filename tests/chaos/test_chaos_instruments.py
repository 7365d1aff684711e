"""The instruments of the drills detect what they are meant to: a drill with a blind instrument would always pass."""

from __future__ import annotations

import asyncio
import importlib
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psycopg
import pytest

from redstart.core.events import Phase
from redstart.core.learning import NewMemories
from redstart.core.run import Result, Status, Step
from redstart.ports.sql.engine import Database
from redstart.ports.sql.store import SqlStore
from redstart.testing import states

BENCH = Path(__file__).parent.parent.parent / "bench"
SPOILT = {
    "lost": "UPDATE runs SET status = 'running'",
    "gaps": "DELETE FROM steps WHERE version = 1",
    "twice": "UPDATE steps SET step = 'decide'",
    "other_way": "DELETE FROM cards",
}


@pytest.fixture
def drill(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of the drills by its name."""
    monkeypatch.syspath_prepend(str(BENCH))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"drills.{name}")

    return load


class Ground:
    """The part of a drill's environment that `truth` needs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query_rows(self, query: str, tenant: str = "home") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT set_config('redstart.tenant', %s, false)", (tenant,))
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def ground(new_postgres: Any) -> Ground:
    """Create a database with one verified run of two steps that stored a card."""
    url = new_postgres()

    async def keep(store: SqlStore) -> None:
        initial_state = states.make_state()
        await store.create(initial_state, folder="/shop", created=datetime.now(UTC))
        fence = (await store.claim(initial_state.run_id)).fence
        first_commit = states.commit(initial_state)
        await store.commit(first_commit, fence)
        final_commit = states.commit(
            first_commit.after,
            Step.remember,
            events=1,
            remembered=NewMemories(card=states.make_card()),
            status=Status.finished,
            result=Result.verified,
        )
        event = final_commit.events[0].model_copy(update={"name": "run", "phase": Phase.end})
        await store.commit(final_commit._replace(events=[event]), fence)

    with Database.open(url) as database:
        asyncio.run(keep(SqlStore(database, time.time)))
    return Ground(url)


def test_intact_run_is_recognized(drill, ground):
    assert not any(drill("truth").check_runs(ground, ["run-1"]))


@pytest.mark.parametrize("what", SPOILT)
def test_missing_and_duplicate_records_are_detected(drill, ground, what):
    ground.query_rows(SPOILT[what])
    assert getattr(drill("truth").check_runs(ground, ["run-1"]), what) == {"run-1"}


def test_run_missing_from_the_store_is_lost(drill, ground):
    assert drill("truth").check_runs(ground, ["run-1", "run-2"]).lost == {"run-2"}


@pytest.fixture
def sleeper() -> Iterator[Any]:
    """Start a program that holds a text in its memory or environment until the test ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(code: str, told: str = "", **environ: str) -> int:
        program = f"import sys\n{code}\nprint('ready', flush=True)\nsys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-c", program], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(told)
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield start
    for process in processes:
        process.communicate()


def test_key_is_found_only_in_memory_and_environment(drill, sleeper):
    holds_text, key = drill("privilege").has_in_memory, secrets.token_hex(16)
    if not can_inspect(holds_text, sleeper("pass")):
        pytest.skip("this user may not read the memory of other processes")
    assert not holds_text(sleeper("pass"), key.encode())
    assert holds_text(sleeper("kept = sys.stdin.readline()", told=f"{key}\n"), key.encode())
    assert holds_text(sleeper("pass", SOME_KEY=key), key.encode())


def can_inspect(holds_text: Any, pid: int) -> bool:
    try:
        holds_text(pid, b"\0 nothing like that \0")
    except PermissionError:
        return False
    return True


def test_child_processes_of_a_worker_are_found(drill, sleeper):
    code = "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nimport atexit\natexit.register(child.kill)"
    pid = sleeper(code, PATH="/usr/bin:/bin")
    assert len(list(drill("privilege").iter_descendants(pid))) == 1
    assert list(drill("privilege").iter_descendants(sleeper("pass"))) == []


class Gone(Exception):
    pass


def test_process_that_ends_during_the_scan_has_no_descendants(drill, monkeypatch):
    privilege = drill("privilege")

    def raise_not_found(*_: object) -> list[Path]:
        raise FileNotFoundError

    monkeypatch.setattr(privilege.Path, "glob", raise_not_found)
    assert list(privilege.iter_descendants(1)) == []


def test_failed_scan_fails_the_drill(drill, sleeper, monkeypatch):
    privilege, worker = drill("privilege"), SimpleNamespace(pid=sleeper("pass"))
    inspected = threading.Event()

    def raise_gone(_pid: int) -> Iterator[int]:
        inspected.set()
        raise Gone

    monkeypatch.setattr(privilege, "iter_descendants", raise_gone)
    monkeypatch.setattr(privilege, "has_in_memory", lambda *_: False)
    with pytest.raises(Gone), privilege.Seen(b"key", worker, worker).watch_workers():
        assert inspected.wait(30)
