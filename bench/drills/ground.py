"""A private fleet on this machine: Postgres, Temporal, a scripted model, and workers that are real processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from _environments import bring_postgres, bring_temporal
from redstart.app.runs import RunRequest, keep_run, take_folder
from redstart.app.servers.postgres import Postgres, serve_postgres
from redstart.app.servers.temporal import Temporal, serve_temporal
from redstart.app.settings import FleetSettings, Models, Settings
from redstart.app.settings.store import StoreSettings
from redstart.app.wire import open_app
from redstart.core.errors import PortError
from redstart.core.run import Level, Limits, RunState
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.orders import create_order
from support.scenarios import parse_question
from support.server import Request, Script, ScriptedServer

ROOT = Path(__file__).parent.parent.parent
DRIVERS = Path(__file__).parent
DYING = ROOT / "tests" / "scenario" / "drivers" / "crash.py"
"""A driver that runs the command and dies at the step and moment in its first arguments."""
MODEL = "openai:scripted"
HOME = "home"
START_SECONDS = 120.0
SUBMITTED_AT_ONCE = 16

CODE = "def double(number):\n    return number + number + 1\n"
TESTS = "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n\n\n"
TESTS += "def test_zero():\n    assert True\n"
RIGHT = (
    "WHY: one too many\n\ncalc.py\n<<<<<<< SEARCH\n    return number + number + 1\n=======\n"
    "    return number + number\n>>>>>>> REPLACE\n"
)
CARD = '{"summary": "off by one", "root_cause": "one too many", "fix": "no extra one", "debug_steps": []}'


def answer(request: Request) -> str:
    """Answer for the tiny repo: the right edit at once, then the card."""
    return CARD if parse_question(request) == "remember" else RIGHT


def create_tiny_repo(folder: Path, tests: str = TESTS) -> Path:
    """Make a folder of two files with one failing test."""
    folder.mkdir(parents=True)
    (folder / "calc.py").write_text(CODE)
    (folder / "test_calc.py").write_text(tests)
    return folder


class Worker:
    """A `redstart worker`, or a driver that becomes one, in a process of its own."""

    def __init__(self, command: Sequence[str], environ: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_ready(self) -> bool:
        return b" serves " in self.log.read_bytes()

    def wait_ready(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > ends:
                raise PortError(f"a worker did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def kill(self) -> None:
        """Kill the worker as `kill -9` does; its children die with it."""
        self.process.kill()
        self.process.wait()

    def end(self, seconds: float = 60.0) -> None:
        """Drain the worker; kill it if that takes longer than `seconds`."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()


class Ground:
    """A fleet whose servers run while it is open; workers come and go."""

    def __init__(
        self, folder: Path, postgres: Postgres, temporal: Temporal, model: ScriptedServer, stack: ExitStack
    ) -> None:
        self.folder, self.postgres, self.temporal, self.model = folder, postgres, temporal, model
        self.home = folder / "home"
        self.home.mkdir()
        self._stack, self._started = stack, 0
        self._lock = threading.Lock()
        self.workers: list[Worker] = []

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a worker; nothing from the user's environment reaches it except PATH."""
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "REDSTART_HOME": str(self.home),
            "REDSTART_STORE__URL": self.postgres.url,
            "REDSTART_FLEET__ADDRESS": self.temporal.address,
            "REDSTART_MODELS__STRONG": MODEL,
            "REDSTART_MODELS__BASE_URL": self.model.openai_url,
            "REDSTART_VERIFY": "quick",
        }

    def create_settings(self, tenant: str = HOME) -> Settings:
        return Settings(
            home=self.home,
            tenant=tenant,
            models=Models(strong=MODEL, fast=MODEL, base_url=self.model.openai_url),
            store=StoreSettings(url=self.postgres.url),
            fleet=FleetSettings(address=self.temporal.address, same_machine=True),
        )

    def start_worker(
        self, *arguments: str, driver: Sequence[str] = (), environ: dict[str, str] | None = None, at_once: int = 4
    ) -> Worker:
        """Start a worker; `driver` is a script that becomes the worker, with its own arguments."""
        with self._lock:
            self._started += 1
            log = self.folder / f"worker-{self._started}.log"
        program = driver or ("-m", "redstart.cli.main")
        command = [*program, "worker", "--at-once", str(at_once), *arguments]
        new_worker = Worker(command, self.environ if environ is None else environ, log)
        self._stack.callback(new_worker.end, 10.0)
        self.workers.append(new_worker)
        return new_worker

    async def store_runs(self, repo: Path, count: int, tenant: str = HOME) -> list[RunState]:
        """Store `count` runs on the repo without submitting them. The snapshot is taken once."""
        with open_app(self.create_settings(tenant)) as app:
            request = RunRequest(Limits(minutes=None), own_python=True, verify=Level.quick)
            prepared = take_folder(app, repo, request)
            return [await keep_run(app, prepared.spec, prepared.path) for _ in range(count)]

    async def connect_fleet(self) -> FleetClient:
        return await FleetClient.connect(self.temporal.address, "default")

    async def submit(self, runs: Iterable[RunState]) -> None:
        """Submit the runs to the fleet, a few at a time."""
        fleet, slots = await self.connect_fleet(), asyncio.Semaphore(SUBMITTED_AT_ONCE)

        async def submit_run(run: RunState) -> None:
            async with slots:
                await fleet.submit(run)

        await asyncio.gather(*(submit_run(run) for run in runs))

    async def finish(self, runs: Iterable[RunState]) -> list[str]:
        """Wait until the supervisor of each run has ended; return the results in the same order."""
        fleet = await self.connect_fleet()
        return [(await fleet.wait_for_end(create_order(run))).outcome for run in runs]

    def query_rows(self, query: str, tenant: str = HOME) -> list[tuple[Any, ...]]:
        """Query the store as this tenant sees it."""
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute("SELECT set_config('redstart.tenant', %s, false)", (tenant,))
            return connection.execute(query.encode()).fetchall()


@contextmanager
def open_cluster(script: Script = answer, *, fair: bool = False) -> Generator[Ground]:
    """Open a fleet in a temporary folder. With `fair` the server honors fairness keys."""
    folder = Path(tempfile.mkdtemp(prefix="redstart-chaos-"))
    try:
        bring_postgres()
        bring_temporal()
        with ExitStack() as stack:
            postgres = stack.enter_context(serve_postgres(folder))
            temporal = stack.enter_context(serve_temporal(folder, with_fairness=fair))
            model = stack.enter_context(ScriptedServer(script))
            yield Ground(folder, postgres, temporal, model, stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
