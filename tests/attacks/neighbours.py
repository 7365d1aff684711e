"""What somebody else's work on the same machine feels of a greedy program in a sandbox.

A neighbour does the same small piece of work again and again. The greedy program, with all that runs it, is in a group
that is frozen and let go in turns, many times a second, so that both states meet the same noise of the machine. Both
come before whatever else the machine does, where that can be had: on a busy machine everybody's work gets slower with
each who joins, greedy or not.

As a program, run in that group: plays the named attack over and over, until its standard input ends.
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
"""The most there is. Below it everything weighs what it weighs on a machine that does nothing else."""
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
    """How much longer the same work takes beside the attack than while that is frozen; 1 is no longer at all."""

    wall: float
    """By the clock."""
    cpu: float
    """By the neighbour's own processor time: what is left when each gets its fair part of a busy machine."""


class Neighbour:
    """Somebody else's work on the same machine, and how much of it is done."""

    def __init__(self, folder: Path, entering: Sequence[str] = ()) -> None:
        counter = folder / "neighbour"
        counter.write_bytes(bytes(8))
        self._file = counter.open("r+b")
        self._shared = mmap.mmap(self._file.fileno(), 8)
        self._process = subprocess.Popen([*entering, sys.executable, "-S", "-c", WORK, str(counter)])

    def measured(self) -> tuple[float, float]:
        """Seconds by the clock, and of the processor, for one piece of work, over one window."""
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
    """A group of version 1 that comes before others at the processor; no group at all where that cannot be had."""

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
    """A group of version 2, which every system with such groups lets root freeze. Raises `OSError` without one."""

    def __init__(self) -> None:
        mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
        top = next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
        if top is None:
            raise FileNotFoundError("no groups of version 2 are mounted")
        self.folder = top / f"redstart-neighbours-{os.getpid()}"
        self.folder.mkdir()

    def freeze(self, frozen: bool) -> None:
        """Returns when it is so. Raises `TimeoutError` where that takes too long."""
        (self.folder / "cgroup.freeze").write_text(str(int(frozen)))
        over = time.monotonic() + PATIENCE
        while f"frozen {int(frozen)}" not in (self.folder / "cgroup.events").read_text():
            if time.monotonic() > over:
                raise TimeoutError("the group does not freeze or thaw")
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
    """Medians over so many pairs of windows, one beside the attack and one while it is frozen."""
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
    """The attack, going on in a group of its own."""
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
