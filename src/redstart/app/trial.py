"""Start a complete fleet on this machine for a trial: a server, a database if one is found, and workers."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from redstart.app.servers.postgres import serve_postgres
from redstart.app.servers.temporal import serve_temporal
from redstart.app.settings import Settings
from redstart.core.errors import ConfigError

DRAINED_WITHIN = 120.0
"""How long workers may take to finish their current steps."""
POLL_SECONDS = 0.5


class TrialServer(NamedTuple):
    """The started fleet."""

    address: str
    keeps: str
    """Where runs are stored, in words."""
    variables: Path
    """A shell file, readable only by this user, that makes Redstart use this fleet."""
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def start_trial(settings: Settings, folder: Path, workers: int) -> Generator[TrialServer]:
    """Start the fleet. At the end, let the workers finish their steps and stop everything.

    Without Postgres, runs are stored as they are without a fleet. Raises `ConfigError` if there is no Temporal server,
    and `PortError` if something does not start.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        server = stack.enter_context(serve_temporal(folder, with_fairness=True))
        variables = {"REDSTART_FLEET__ADDRESS": server.address, "REDSTART_FLEET__SAME_MACHINE": "true"}
        keeps = "where they were" if settings.store.url else str(settings.home)
        if not settings.store.url:
            with suppress(ConfigError):  # no Postgres on this machine
                variables["REDSTART_STORE__URL"] = stack.enter_context(serve_postgres(folder)).url
                keeps = f"Postgres in {folder}"
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(_drain_workers, processes)
        processes += [_start_worker({**os.environ, **variables}) for _ in range(workers)]
        yield TrialServer(server.address, keeps, write_variables(folder / "env.sh", variables), processes)


def keep_up(running: TrialServer, notify: Callable[[str], None]) -> None:
    """Watch the workers until interrupted. Raises `ConfigError` if a worker cannot serve or no worker is left."""
    while True:
        for process in list(running.workers):
            code = process.poll()
            if code == 2:
                raise ConfigError("a worker cannot serve the fleet", remedy="see its message above")
            if code is not None:
                running.workers.remove(process)
                notify(f"worker {process.pid} exited with code {code}; the other workers take over its work")
        if not running.workers:
            raise ConfigError("no worker is left", remedy="to see what is missing on this machine: redstart doctor")
        time.sleep(POLL_SECONDS)


def _start_worker(environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "redstart.cli.main", "worker", "--pool", "both"]
    return subprocess.Popen(command, env=dict(environ), stdin=subprocess.DEVNULL, start_new_session=True)


def _drain_workers(workers: list[subprocess.Popen[bytes]]) -> None:
    for process in workers:
        process.terminate()
    ends = time.monotonic() + DRAINED_WITHIN
    for process in workers:
        try:
            process.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write_variables(file: Path, variables: Mapping[str, str]) -> Path:
    """Write a shell file with the variables. Only the user can read it, because it may hold the database password."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()))
    return file
