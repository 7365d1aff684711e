"""Hundreds of executions, eight at once, whose parents are killed at any moment, leave nothing behind.

Processes end with their parent. The next parent that runs something removes what a killed one could not: its folders,
its groups, and a bubblewrap process that was cut off just before it asked to die with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backends import BACKENDS
from watch import is_alive, list_pids

from redstart.core.change import Snapshot
from redstart.ports.sandbox.docker.daemon import DaemonApi, as_list, parse_socket
from redstart.ports.sandbox.docker.spec import OWNER_LABEL
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.trees import GitTrees

WORKER = Path(__file__).parent / "drivers" / "soak_worker.py"
AT_ONCE = 8
SECONDS = 1500.0
BURIAL = 60.0
"""A process must be gone within this time, even on a busy machine."""

FEW, MANY = 16, 500
PLAYED = [
    pytest.param(backend, wanted, marks=pytest.mark.soak if wanted == MANY or backend == "docker+runsc" else ())
    for backend in BACKENDS
    for wanted in (FEW, MANY)
]


class Soak:
    """Keeps eight workers busy, kills some of them at random moments, and replaces them."""

    def __init__(self, backend: str, folder: Path, seed: int) -> None:
        self.token = f"soak-{secrets.token_hex(12)}"
        self.folder, self._backend, self._random = folder, backend, random.Random(seed)
        self.begun = self.ended = self.killed = 0
        self.parents: set[int] = set()
        for name in ("tmp", "project", "scratch"):
            (folder / name).mkdir()
        (folder / "project" / "shop.py").write_text("price = 1\n")
        trees = GitTrees(folder / "snapshots", DirectoryBlobs(folder / "blobs"))
        self._snapshot: Snapshot = trees.take(folder / "project")
        trees.close()

    def run(self, count: int) -> None:
        """Run until this many executions have started. Raises `AssertionError` if a worker fails by itself."""
        deadline = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as workers:
            for _ in range(AT_ONCE):
                self._start(workers)
            while self.begun < count:
                assert time.monotonic() < deadline, f"only {self.begun} executions in {SECONDS} seconds"
                for key, _ in workers.select(timeout=1.0):
                    self._handle_line(workers, key)
            for key in list(workers.get_map().values()):
                self._kill(workers, key)

    def run_once(self) -> None:
        """Run one execution without a kill, as the next user would."""
        completed = subprocess.run(
            self._build_command(1), env=self._build_environ(), capture_output=True, text=True, check=False
        )
        assert completed.stdout == "begun\nended\n", completed.stderr

    def _start(self, workers: selectors.BaseSelector) -> None:
        worker = subprocess.Popen(
            self._build_command(20),
            env=self._build_environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.parents.add(worker.pid)
        lines_left = self._random.randrange(2, 24)
        workers.register(worker.stdout, selectors.EVENT_READ, [worker, lines_left])  # type: ignore[arg-type]

    def _handle_line(self, workers: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        worker, lines_left = key.data
        line = worker.stdout.readline()
        self.begun += line == "begun\n"
        self.ended += line == "ended\n"
        key.data[1] = lines_left - 1
        if line and lines_left > 1:
            return
        if not line:
            assert worker.wait() == 0, worker.stderr.read()
        self._kill(workers, key)
        self._start(workers)

    def _kill(self, workers: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        worker = key.data[0]
        workers.unregister(key.fileobj)
        self.killed += worker.poll() is None
        worker.kill()
        worker.communicate()

    def _build_command(self, count: int) -> list[str]:
        arguments = (self._backend, str(self.folder), self._snapshot.model_dump_json(), self.token, str(count))
        return [sys.executable, str(WORKER), *arguments]

    def _build_environ(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.folder / "tmp")}

    def list_orphans(self) -> list[str]:
        """List the command lines of live processes that belong to an execution."""
        commands: list[str] = []
        for pid in list_pids():
            with contextlib.suppress(OSError):
                command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
                process_data = Path(f"/proc/{pid}/environ").read_bytes() + command_line
                if self.token.encode() in process_data and is_alive(pid):
                    commands.append(command_line.replace(b"\0", b" ").decode(errors="replace")[:200])
        return commands

    def list_folders(self) -> list[str]:
        places = ("scratch", "snapshots/work", "tmp")
        return [str(path) for place in places for path in (self.folder / place).glob("*")]

    def list_mounts(self) -> list[str]:
        return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(self.folder) in line]

    def list_groups(self) -> list[str]:
        """List control groups that one of our parents made; their names begin with its process ID."""
        return [str(path) for path in self._iter_groups() if self._is_ours(path.name)]

    def _iter_groups(self) -> Iterator[Path]:
        for parent, names, _ in os.walk("/sys/fs/cgroup"):
            yield from (Path(parent, name) for name in names if name.startswith("redstart-"))

    def _is_ours(self, name: str) -> bool:
        pid = name.removeprefix("redstart-").partition("-")[0]
        return pid.isdigit() and int(pid) in self.parents

    def list_containers(self) -> list[str]:
        if not self._backend.startswith("docker"):
            return []
        api = DaemonApi(parse_socket(os.environ.get("DOCKER_HOST", "")))
        there = as_list(asyncio.run(api.call("GET", "/containers/json", query={"all": "1"})))
        owners = [str((container["Labels"] or {}).get(OWNER_LABEL, "//0/")) for container in there]
        return [owner for owner in owners if int(owner.split("/")[2] or 0) in self.parents]


@pytest.mark.parametrize(("backend", "wanted"), PLAYED)
def test_killed_executions_leave_nothing_behind(
    backend: str, wanted: int, tmp_path: Path, usable: Callable[[str], None]
):
    usable(backend)
    soak = Soak(backend, tmp_path, seed=wanted)
    soak.run(wanted)
    soak.run_once()
    deadline = time.monotonic() + BURIAL
    while soak.list_orphans() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert soak.list_orphans() == []
    assert soak.begun >= wanted
    assert soak.killed >= AT_ONCE
    assert soak.ended > 0
    leftovers = {
        "folders": soak.list_folders(),
        "mounts": soak.list_mounts(),
        "groups": soak.list_groups(),
        "alone": soak.list_containers(),
    }
    assert leftovers == {"folders": [], "mounts": [], "groups": [], "alone": []}
