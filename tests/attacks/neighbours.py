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
from yard import python3

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

    def measured(self) -> tuple[float, float]:
        """Measure the clock seconds and processor seconds of one piece of work over one window."""
        before, began, used = self.done(), time.monotonic(), self._cpu()
        time.sleep(WINDOW)
        done = max(self.done() - before, 1)
        return (time.monotonic() - began) / done, (self._cpu() - used) / done

    def done(self) -> int:
        return struct.unpack("Q", self._shared[:])[0]

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _cpu(self) -> float:
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

    def entering(self) -> list[str]:
        return [*ENTER, str(self._folder / "cgroup.procs")] if self._folder else []

    def close(self) -> None:
        over = time.monotonic() + PATIENCE
        while self._folder and time.monotonic() < over:
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
        over = time.monotonic() + PATIENCE
        while f"frozen {int(frozen)}" not in (self.folder / "cgroup.events").read_text():
            if time.monotonic() > over:
                raise TimeoutError("the group did not freeze or thaw in time")
            time.sleep(0.001)

    def close(self) -> None:
        over = time.monotonic() + PATIENCE
        while time.monotonic() < over:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            (self.folder / "cgroup.kill").write_text("1")
            time.sleep(0.01)


def felt(attack: str, pairs: int) -> Felt:
    """Return the medians over pairs of windows, one beside the attack and one while it is frozen."""
    with tempfile.TemporaryDirectory(prefix="rb-") as folder, _arena() as arena, _greedy(attack, arena) as freezer:
        neighbour = Neighbour(Path(folder), arena.entering())
        try:
            seen: list[Felt] = []
            neighbour.measured()
            for _ in range(pairs):
                wall, cpu = neighbour.measured()
                freezer.freeze(True)
                calm_wall, calm_cpu = neighbour.measured()
                freezer.freeze(False)
                if cpu and calm_cpu:
                    seen.append(Felt(wall / calm_wall, cpu / calm_cpu))
            return Felt(*(statistics.median(values) for values in zip(*seen, strict=True)))
        finally:
            neighbour.close()


@contextlib.contextmanager
def _arena() -> Generator[Arena]:
    arena = Arena()
    try:
        yield arena
    finally:
        arena.close()


@contextlib.contextmanager
def _greedy(attack: str, arena: Arena) -> Generator[Freezer]:
    """Run the attack in its own group."""
    with contextlib.ExitStack() as held:
        freezer = Freezer()
        held.callback(freezer.close)
        enter = [*arena.entering(), *ENTER, str(freezer.folder / "cgroup.procs")]
        command = [*enter, sys.executable, "-B", __file__, attack]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as going:
            assert going.stdout is not None
            assert going.stdout.readline() == b"going\n"
            try:
                yield freezer
            finally:
                freezer.freeze(False)
                going.communicate()


async def over_and_over(attack: str) -> None:
    [chosen] = [each for each in attacks() if each.name == f"resources/{attack}"]
    with tempfile.TemporaryDirectory(prefix="rb-") as folder:
        workspaces = FolderWorkspaces(Path(folder, "snapshots"))
        execution = Execution(
            argv=(*COMMANDS[chosen.path.suffix], f"{IN}/{chosen.file}"),
            snapshot=workspaces.snapshot("shop", {"shop.py": "price = 1\n"}),
            environment=Environment(mount="/repo", python=python3()),
            limits=LIMITS,
            files_in=chosen.files,
        )
        box = Bubblewrap(workspaces, Path(folder, "scratch"))
        over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        print("going", flush=True)
        while not over.done():
            run = asyncio.create_task(box.run(execution))
            await asyncio.wait({run, over}, return_when=asyncio.FIRST_COMPLETED)
            if not run.done():
                run.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await run


if __name__ == "__main__":
    asyncio.run(over_and_over(*sys.argv[1:]))
