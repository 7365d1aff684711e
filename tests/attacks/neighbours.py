"""How much a greedy program in a sandbox slows down other work on the same machine.

A neighbor repeats the same small piece of work. The greedy program and everything that runs it are in a group that is
frozen and thawed in turns, many times a second, so that both states meet the same noise of the machine. Where possible,
both take precedence over everything else on the machine: on a busy machine each additional process, greedy or not,
slows down all others.

As a program, run in that group, this repeats the named attack until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import NamedTuple

from catalogue import COMMANDS, attacks
from harness import LIMITS
from yard import find_python

from redstart.core.shell import IN, Environment, Execution
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.testing.sandbox import FolderWorkspaces

GREEDY = ("spin_six", "memory_six", "fork_bomb", "disk_files", "output_flood")
WINDOW = 0.1
PATIENCE = 60.0
SHARES = 256 * 1024
"""The maximum. Within the group, shares work as on a machine that does nothing else."""
ENTER = ("/bin/sh", "-ec", 'echo 0 >"$1"; shift; exec "$@"', "sh")
WORK = """
import hashlib, mmap, struct, sys
with open(sys.argv[1], 'r+b') as file:
    shared = mmap.mmap(file.fileno(), 8)
work, done = bytes(1 << 14), 0
while True:
    hashlib.sha256(work).digest()
    done += 1
    shared[:] = struct.pack('Q', done)
"""


class Felt(NamedTuple):
    """How much longer the same work takes beside the attack than while the attack is frozen; 1 means no longer."""

    wall: float
    """By the clock."""
    cpu: float
    """By the neighbor's own processor time: the slowdown that remains if each gets its fair share of a busy machine."""


class Neighbour:
    """Other work on the same machine, and a count of its finished pieces."""

    def __init__(self, folder: Path, entering: Sequence[str] = ()) -> None:
        counter = folder / "neighbour"
        counter.write_bytes(bytes(8))
        self._file = counter.open("r+b")
        self._shared = mmap.mmap(self._file.fileno(), 8)
        self._process = subprocess.Popen([*entering, sys.executable, "-S", "-c", WORK, str(counter)])

    def measure(self) -> tuple[float, float]:
        """Measure the clock seconds and processor seconds of one piece of work over one window."""
        start_count, began, used = self.done(), time.monotonic(), self._read_cpu_seconds()
        time.sleep(WINDOW)
        finished = max(self.done() - start_count, 1)
        return (time.monotonic() - began) / finished, (self._read_cpu_seconds() - used) / finished

    def done(self) -> int:
        return struct.unpack("Q", self._shared[:])[0]

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _read_cpu_seconds(self) -> float:
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._shared.close()
        self._file.close()


class Arena:
    """A cgroup of version 1 that has priority at the processor; no group where that is impossible."""

    def __init__(self) -> None:
        self._folder: Path | None = Path("/sys/fs/cgroup/cpu", f"redstart-arena-{os.getpid()}")
        try:
            self._folder.mkdir()
            (self._folder / "cpu.shares").write_text(str(SHARES))
        except OSError:
            self._folder = None

    def build_prefix(self) -> list[str]:
        return [*ENTER, str(self._folder / "cgroup.procs")] if self._folder else []

    def close(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._folder and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
                return
            time.sleep(0.01)


class Freezer:
    """A cgroup of version 2, which root can freeze wherever version 2 is mounted. Raises `OSError` without one."""

    def __init__(self) -> None:
        mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
        top = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
        if top is None:
            raise FileNotFoundError("no cgroups of version 2 are mounted")
        self.folder = top / f"redstart-neighbours-{os.getpid()}"
        self.folder.mkdir()

    def freeze(self, frozen: bool) -> None:
        """Freeze or thaw the group and wait until it is done. Raises `TimeoutError` if that takes too long."""
        (self.folder / "cgroup.freeze").write_text(str(int(frozen)))
        deadline = time.monotonic() + PATIENCE
        while f"frozen {int(frozen)}" not in (self.folder / "cgroup.events").read_text():
            if time.monotonic() > deadline:
                raise TimeoutError("the group did not freeze or thaw in time")
            time.sleep(0.001)

    def close(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            (self.folder / "cgroup.kill").write_text("1")
            time.sleep(0.01)


def felt(attack: str, pairs: int) -> Felt:
    """Return the medians over pairs of windows, one beside the attack and one while it is frozen."""
    with (
        tempfile.TemporaryDirectory(prefix="rb-") as folder,
        _open_arena() as arena,
        _run_attack(attack, arena) as freezer,
    ):
        neighbour = Neighbour(Path(folder), arena.build_prefix())
        try:
            slowdowns: list[Felt] = []
            neighbour.measure()
            for _ in range(pairs):
                wall, cpu = neighbour.measure()
                freezer.freeze(True)
                calm_wall, calm_cpu = neighbour.measure()
                freezer.freeze(False)
                if cpu and calm_cpu:
                    slowdowns.append(Felt(wall / calm_wall, cpu / calm_cpu))
            return Felt(*(statistics.median(values) for values in zip(*slowdowns, strict=True)))
        finally:
            neighbour.close()


@contextlib.contextmanager
def _open_arena() -> Generator[Arena]:
    arena = Arena()
    try:
        yield arena
    finally:
        arena.close()


@contextlib.contextmanager
def _run_attack(attack: str, arena: Arena) -> Generator[Freezer]:
    """Run the attack in its own group."""
    with contextlib.ExitStack() as stack:
        freezer = Freezer()
        stack.callback(freezer.close)
        prefix = [*arena.build_prefix(), *ENTER, str(freezer.folder / "cgroup.procs")]
        command = [*prefix, sys.executable, "-B", __file__, attack]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"going\n"
            try:
                yield freezer
            finally:
                freezer.freeze(False)
                process.communicate()


async def repeat_attack(attack: str) -> None:
    [program] = [candidate for candidate in attacks() if candidate.name == f"resources/{attack}"]
    with tempfile.TemporaryDirectory(prefix="rb-") as folder:
        workspaces = FolderWorkspaces(Path(folder, "snapshots"))
        execution = Execution(
            argv=(*COMMANDS[program.path.suffix], f"{IN}/{program.file}"),
            snapshot=workspaces.create_snapshot("shop", {"shop.py": "price = 1\n"}),
            environment=Environment(mount="/repo", python=find_python()),
            limits=LIMITS,
            files_in=program.files,
        )
        sandbox = Bubblewrap(workspaces, Path(folder, "scratch"))
        stop_task = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        print("going", flush=True)
        while not stop_task.done():
            run = asyncio.create_task(sandbox.run(execution))
            await asyncio.wait({run, stop_task}, return_when=asyncio.FIRST_COMPLETED)
            if not run.done():
                run.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await run


if __name__ == "__main__":
    asyncio.run(repeat_attack(*sys.argv[1:]))
