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

    def rows(self, query: str, tenant: str = "home") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT set_config('redstart.tenant', %s, false)", (tenant,))
            done = connection.execute(query.encode())
            return done.fetchall() if done.description else []


@pytest.fixture
def ground(new_postgres: Any) -> Ground:
    """Create a database with one verified run of two steps that stored a card."""
    url = new_postgres()

    async def keep(store: SqlStore) -> None:
        begun = states.state()
        await store.create(begun, folder="/shop", created=datetime.now(UTC))
        fence = (await store.claim(begun.run_id)).fence
        first = states.commit(begun)
        await store.commit(first, fence)
        ended = states.commit(
            first.after,
            Step.remember,
            events=1,
            remembered=NewMemories(card=states.card()),
            status=Status.finished,
            result=Result.verified,
        )
        event = ended.events[0].model_copy(update={"name": "run", "phase": Phase.end})
        await store.commit(ended._replace(events=[event]), fence)

    with Database.open(url) as database:
        asyncio.run(keep(SqlStore(database, time.time)))
    return Ground(url)


def test_a_run_that_is_whole_is_found_to_be(drill, ground):
    assert not any(drill("truth").truth(ground, ["run-1"]))


@pytest.mark.parametrize("what", SPOILT)
def test_what_is_missing_or_there_twice_is_found(drill, ground, what):
    ground.rows(SPOILT[what])
    assert getattr(drill("truth").truth(ground, ["run-1"]), what) == {"run-1"}


def test_a_run_that_the_store_does_not_know_is_lost(drill, ground):
    assert drill("truth").truth(ground, ["run-1", "run-2"]).lost == {"run-2"}


@pytest.fixture
def sleeper() -> Iterator[Any]:
    """Start a program that holds a text in its memory or environment until the test ends."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, told: str = "", **environ: str) -> int:
        program = f"import sys\n{code}\nprint('ready', flush=True)\nsys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-c", program], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(told)
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield start
    for process in started:
        process.communicate()


def test_a_key_is_found_in_memory_and_environment_and_only_there(drill, sleeper):
    holds, key = drill("privilege").holds, secrets.token_hex(16)
    if not holds_can_look(holds, sleeper("pass")):
        pytest.skip("this user may not read the memory of other processes")
    assert not holds(sleeper("pass"), key.encode())
    assert holds(sleeper("kept = sys.stdin.readline()", told=f"{key}\n"), key.encode())
    assert holds(sleeper("pass", SOME_KEY=key), key.encode())


def holds_can_look(holds: Any, pid: int) -> bool:
    try:
        holds(pid, b"\0 nothing like that \0")
    except PermissionError:
        return False
    return True


def test_processes_below_a_worker_are_seen(drill, sleeper):
    code = "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nimport atexit\natexit.register(child.kill)"
    pid = sleeper(code, PATH="/usr/bin:/bin")
    assert len(list(drill("privilege").descendants(pid))) == 1
    assert list(drill("privilege").descendants(sleeper("pass"))) == []


class Gone(Exception):
    pass


def test_one_that_ends_while_it_is_looked_at_has_nothing_below(drill, monkeypatch):
    privilege = drill("privilege")

    def ended(*_: object) -> list[Path]:
        raise FileNotFoundError

    monkeypatch.setattr(privilege.Path, "glob", ended)
    assert list(privilege.descendants(1)) == []


def test_a_drill_whose_looking_broke_gives_no_figures(drill, sleeper, monkeypatch):
    privilege, worker = drill("privilege"), SimpleNamespace(pid=sleeper("pass"))
    looked = threading.Event()

    def broken(_pid: int) -> Iterator[int]:
        looked.set()
        raise Gone

    monkeypatch.setattr(privilege, "descendants", broken)
    monkeypatch.setattr(privilege, "holds", lambda *_: False)
    with pytest.raises(Gone), privilege.Seen(b"key", worker, worker).looking():
        assert looked.wait(30)
