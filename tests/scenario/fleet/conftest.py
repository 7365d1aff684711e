"""A fleet on this machine: Temporal's development server, and workers in separate processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from redstart.app.servers.temporal import Temporal, serve_temporal
from support.user import User

SECONDS = 120


class Worker:
    """A worker process, with the line that it prints when it is ready."""

    def __init__(self, environ: dict[str, str], pool: str, log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "redstart.cli.main", "worker", "--pool", pool]
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                command, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        assert "serves" in self.said, log.read_text()

    @property
    def pid(self) -> int:
        return int(re.findall(r"\d+", self.said)[0])

    def end(self, signum: int) -> int:
        os.kill(self.pid, signum)
        return self.process.wait(SECONDS)


class Fleet:
    def __init__(self, server: Temporal, stack: ExitStack, folder: Path) -> None:
        self.server, self._stack, self._folder = server, stack, folder
        self._count = 0

    def join(self, user: User) -> None:
        """Point the user's commands at this fleet, which runs on their machine."""
        user.environ |= {
            "REDSTART_FLEET__ADDRESS": self.server.address,
            "REDSTART_FLEET__NAMESPACE": "default",
            "REDSTART_FLEET__SAME_MACHINE": "true",
        }

    def start_worker(self, user: User, pool: str = "both", **environ: str) -> Worker:
        self._count += 1
        log = self._folder / f"worker-{self._count}.log"
        new_worker = Worker({**user.environ, **environ}, pool, log)
        self._stack.callback(_stop_process, new_worker.process)
        return new_worker


def _stop_process(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait(SECONDS)
    assert process.stdout is not None
    process.stdout.close()


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Temporal]:
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture
def fleet(temporal: Temporal, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(temporal, stack, tmp_path)


@pytest.fixture
def started(fleet: Fleet, user: User) -> Callable[..., Worker]:
    """Return a function that starts a worker of this user's fleet."""
    fleet.join(user)

    def start(pool: str = "both", **environ: str) -> Worker:
        return fleet.start_worker(user, pool, **environ)

    return start
