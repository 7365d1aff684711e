"""Watches what all processes of one execution use together, unless a control group already bounds it."""

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
"""Seconds between two checks; the second if half the memory is used, since the rest may be used up soon."""
GROUP_PAUSE, DISK_PAUSE = 0.2, 1.0
IDLE = 9
"""The minimum pause, as a multiple of the time of a check: checks must not slow down what they check."""
SLACK = 2.0
"""Seconds of processor time: a process that alone uses too much is ended by its own limit, which says more."""
OWN_PROCESSES = 3
"""Processes of the sandbox itself, around the command."""
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
    """The size of the content of some folders."""

    size: int = 0
    files: int = 0


class ExecutionWatch:
    """Checks one execution from time to time.

    If there is a `group`, only processor time is checked: the kernel enforces the rest. `folders` are those on the
    host's disk that the command can fill; none if it writes to a file system that is bounded itself.
    """

    def __init__(self, limits: SandboxLimits, *, group: Cgroup | None, folders: Sequence[Path] = ()) -> None:
        self._limits = limits
        self._group = group
        self._folders = folders
        self._before = stored(folders)

    async def watch(self, pid: int) -> ExitCause:
        """Return when a limit is reached that the kernel does not enforce, and say which one."""
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
        """Return the limit that is reached, and whether to check again soon."""
        if self._group:
            return (ExitCause.cpu if self._group.cpu() > self._limits.cpu + SLACK else None), False
        used = family(pid)
        if used.cpu > self._limits.cpu + SLACK:
            return ExitCause.cpu, False
        if used.processes > self._limits.processes + OWN_PROCESSES:
            return ExitCause.processes, False
        # Shared pages count in each process's size. The exact sum is expensive, so it is computed only on suspicion.
        if used.memory > self._limits.memory and exact_memory(pid) > self._limits.memory:
            return ExitCause.memory, False
        return None, used.memory > self._limits.memory // 2

    def disk(self) -> ExitCause | None:
        """Return the cause if the folders hold more than before plus what is allowed."""
        if not self._folders:
            return None
        now = stored(self._folders)
        too_much = now.size - self._before.size > self._limits.disk
        return ExitCause.disk if too_much or now.files - self._before.files > self._limits.inodes else None


def stored(folders: Sequence[Path]) -> FolderUsage:
    """Measure allocated bytes and entries below the folders. Concurrent changes may or may not be counted."""
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
    """Measure what a process and its living descendants use, including the time of those they have waited for.

    Memory is the sum of their sizes and of the unnamed files that they hold open, some of which may be counted twice.
    """
    about = _descendants(pid)
    ticks = sum(int(number) for fields in about.values() for number in fields[11:15])
    resident = sum(int(fields[21]) * PAGE for fields in about.values())
    return ProcessUsage(len(about), ticks / TICKS, resident + sum(_nameless(about).values()))


def exact_memory(pid: int) -> int:
    """Return the bytes that they use together, with shared memory counted once; 0 for unreadable processes.

    An unnamed file that is neither open nor mapped at that moment (on its way between processes) is not seen.
    """
    about = _descendants(pid)
    held = _nameless(about)
    return sum(held.values()) + sum(_mapped(each, held) for each in about)


def _mapped(pid: int, held: Collection[int]) -> int:
    """Return a process's part of its mapped memory, without the unnamed files that are counted as files."""
    total = 0
    skipped = False
    with contextlib.suppress(OSError, ValueError, IndexError):
        name = "smaps" if held else "smaps_rollup"  # the second is the sum of the first, and much faster
        for line in Path(PROC, str(pid), name).read_text(errors="replace").splitlines():
            if line.startswith("Pss:"):
                total += 0 if skipped else int(line.split()[1]) * 1024
            elif line[0] in HEXADECIMAL:  # a mapping begins; the names of its properties are capitalized
                skipped = NAMELESS in line and int(line.split()[4]) in held
    return total


def _nameless(pids: Iterable[int]) -> dict[int, int]:
    """Return the sizes of files that exist only in memory, by inode, if some process has them open."""
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
    """Return a process and its descendants, each with its fields of `/proc/PID/stat` from the state on."""
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
    """Return the children of all threads of a process. Raises `OSError` if it is gone."""
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
    """Return the same by reading the parent of every process of the machine."""
    found: list[int] = []
    for name in os.listdir(PROC):  # noqa: PTH208 (it is walked several times a second)
        if name.isdigit():
            with contextlib.suppress(OSError):
                about = Path(PROC, name, "stat").read_text(errors="replace").rpartition(")")[2].split()
                found += [int(name)] if int(about[1]) == pid else []
    return found
