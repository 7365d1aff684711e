"""Watches what all processes of one execution use together, as far as no group of the kernel's bounds it already."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox.cgroups import Cgroup

PAUSE, NEAR_PAUSE = 0.05, 0.02
"""Seconds between two looks; the second where half the memory is used already, since the rest is soon taken."""
GROUP_PAUSE, DISK_PAUSE = 0.2, 1.0
IDLE = 9
"""So many times what a look has cost is waited at least: looking must not slow down what is looked at."""
SLACK = 2.0
"""Seconds of processor time: a single process that spends too much is ended by its own limit, which tells more."""
OWN_PROCESSES = 3
"""Of the sandbox itself, around the command."""
PROC = Path("/proc")
NAMELESS = "/memfd:"
HEXADECIMAL = frozenset("0123456789abcdef")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessUsage(NamedTuple):
    """What a process and its descendants use now."""

    processes: int = 0
    cpu: float = 0.0
    memory: int = 0


class FolderUsage(NamedTuple):
    """What lies in some folders."""

    size: int = 0
    files: int = 0


class ExecutionWatch:
    """Looks after one execution, from time to time.

    Where there is a `group`, only processor time is looked at: the kernel sees to the rest. `folders` are those on the
    host's disk that the command can fill; none where it writes to a file system that is bounded itself.
    """

    def __init__(self, limits: SandboxLimits, *, group: Cgroup | None, folders: Sequence[Path] = ()) -> None:
        self._limits = limits
        self._group = group
        self._folders = folders
        self._before = stored(folders)

    async def watch(self, pid: int) -> ExitCause:
        """Returns when a limit is met that the kernel does not see to, and says which."""
        disk_at = time.monotonic() + DISK_PAUSE
        while True:
            began = time.monotonic()
            met, near = self._met(pid)
            if met is None and began >= disk_at:
                met = self.disk()
                disk_at = time.monotonic() + DISK_PAUSE
            if met:
                return met
            pause = GROUP_PAUSE if self._group else NEAR_PAUSE if near else PAUSE
            await asyncio.sleep(max(pause, IDLE * (time.monotonic() - began)))

    def _met(self, pid: int) -> tuple[ExitCause | None, bool]:
        """The limit that is met, and whether there is reason to look again soon."""
        if self._group:
            return (ExitCause.cpu if self._group.cpu() > self._limits.cpu + SLACK else None), False
        used = family(pid)
        if used.cpu > self._limits.cpu + SLACK:
            return ExitCause.cpu, False
        if used.processes > self._limits.processes + OWN_PROCESSES:
            return ExitCause.processes, False
        # Pages that several share are in each one's size: the exact sum is dear, so it is made only on suspicion.
        if used.memory > self._limits.memory and exact_memory(pid) > self._limits.memory:
            return ExitCause.memory, False
        return None, used.memory > self._limits.memory // 2

    def disk(self) -> ExitCause | None:
        """Whether more lies in the folders than was there before and is allowed."""
        if not self._folders:
            return None
        now = stored(self._folders)
        too_much = now.size - self._before.size > self._limits.disk
        return ExitCause.disk if too_much or now.files - self._before.files > self._limits.inodes else None


def stored(folders: Sequence[Path]) -> FolderUsage:
    """Allocated bytes and entries below the folders. What changes meanwhile may or may not be counted."""
    size = files = 0
    left = [str(folder) for folder in folders]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                files += 1
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return FolderUsage(size, files)


def family(pid: int) -> ProcessUsage:
    """What a process and its living descendants use, with the time of those that they have waited for.

    Memory is the sum of their sizes and of the nameless files that they hold open, of which some may be counted twice.
    """
    about = _descendants(pid)
    ticks = sum(int(number) for fields in about.values() for number in fields[11:15])
    resident = sum(int(fields[21]) * PAGE for fields in about.values())
    return ProcessUsage(len(about), ticks / TICKS, resident + sum(_nameless(about).values()))


def exact_memory(pid: int) -> int:
    """Bytes that they use together, with what several share counted once; 0 for those that may not be asked.

    A nameless file that is neither open nor mapped at that moment (on its way from one to another) is not seen.
    """
    about = _descendants(pid)
    held = _nameless(about)
    return sum(held.values()) + sum(_mapped(each, held) for each in about)


def _mapped(pid: int, held: Collection[int]) -> int:
    """A process's part of what it has mapped, without the nameless files that are counted as files."""
    total = 0
    skipped = False
    with contextlib.suppress(OSError, ValueError, IndexError):
        name = "smaps" if held else "smaps_rollup"  # the second is the sum of the first, and much sooner told
        for line in Path(PROC, str(pid), name).read_text(errors="replace").splitlines():
            if line.startswith("Pss:"):
                total += 0 if skipped else int(line.split()[1]) * 1024
            elif line[0] in HEXADECIMAL:  # a mapping begins; its properties have names in capitals
                skipped = NAMELESS in line and int(line.split()[4]) in held
    return total


def _nameless(pids: Iterable[int]) -> dict[int, int]:
    """Files that live in memory and that no folder shows, by number, as far as some process has them open."""
    found: dict[int, int] = {}
    for pid in pids:
        folder = f"{PROC}/{pid}/fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208 (it is walked several times a second)
                path = f"{folder}/{name}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(NAMELESS):  # noqa: PTH115 (the same)
                        about = os.stat(path)  # noqa: PTH116 (the same)
                        found[about.st_ino] = about.st_blocks * 512
    return found


def _descendants(pid: int) -> dict[int, list[str]]:
    """A process and its descendants, each with what `/proc` tells of it from its state on."""
    found: dict[int, list[str]] = {}
    left = [pid]
    while left:
        each = left.pop()
        if each in found:
            continue
        with contextlib.suppress(OSError):
            fields = Path(PROC, str(each), "stat").read_text(errors="replace").rpartition(")")[2].split()
            found[each] = fields
            left += _children(each)
    return found


def _children(pid: int) -> list[int]:
    """Of all threads of a process, since each has its own. Raises `OSError` where it is gone."""
    if not _kernel_lists_children():
        return _children_by_parent(pid)
    found: list[int] = []
    folder = f"{PROC}/{pid}/task"
    for thread in os.listdir(folder):  # noqa: PTH208 (it is walked several times a second)
        with contextlib.suppress(OSError):
            found += map(int, Path(folder, thread, "children").read_text().split())
    return found


@functools.cache
def _kernel_lists_children() -> bool:
    return Path(PROC, "thread-self", "children").exists()


def _children_by_parent(pid: int) -> list[int]:
    """The same by asking every process of the machine for its parent."""
    found: list[int] = []
    for name in os.listdir(PROC):  # noqa: PTH208 (it is walked several times a second)
        if name.isdigit():
            with contextlib.suppress(OSError):
                about = Path(PROC, name, "stat").read_text(errors="replace").rpartition(")")[2].split()
                found += [int(name)] if int(about[1]) == pid else []
    return found
