"""Watch what all processes of one execution use together, unless a control group already bounds it."""

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
        self._before = measure_folders(folders)

    async def watch(self, pid: int) -> ExitCause:
        """Return when a limit is reached that the kernel does not enforce, and say which one."""
        disk_at = time.monotonic() + DISK_PAUSE
        while True:
            began = time.monotonic()
            reached, is_near = self._check_limits(pid)
            if reached is None and began >= disk_at:
                reached = self.check_disk()
                disk_at = time.monotonic() + DISK_PAUSE
            if reached:
                return reached
            pause = GROUP_PAUSE if self._group else NEAR_PAUSE if is_near else PAUSE
            await asyncio.sleep(max(pause, IDLE * (time.monotonic() - began)))

    def _check_limits(self, pid: int) -> tuple[ExitCause | None, bool]:
        """Return the limit that is reached, and whether to check again soon."""
        if self._group:
            return (ExitCause.cpu if self._group.get_cpu_seconds() > self._limits.cpu + SLACK else None), False
        used = measure_processes(pid)
        if used.cpu > self._limits.cpu + SLACK:
            return ExitCause.cpu, False
        if used.processes > self._limits.processes + OWN_PROCESSES:
            return ExitCause.processes, False
        # Shared pages count in each process's size. The exact sum is expensive, so it is computed only on suspicion.
        if used.memory > self._limits.memory and measure_exact_memory(pid) > self._limits.memory:
            return ExitCause.memory, False
        return None, used.memory > self._limits.memory // 2

    def check_disk(self) -> ExitCause | None:
        """Return the cause if the folders hold more than before plus what is allowed."""
        if not self._folders:
            return None
        usage = measure_folders(self._folders)
        is_too_large = usage.size - self._before.size > self._limits.disk
        return ExitCause.disk if is_too_large or usage.files - self._before.files > self._limits.inodes else None


def measure_folders(folders: Sequence[Path]) -> FolderUsage:
    """Measure allocated bytes and entries below the folders. Concurrent changes may or may not be counted."""
    size = files = 0
    pending = [str(folder) for folder in folders]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                files += 1
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
    return FolderUsage(size, files)


def measure_processes(pid: int) -> ProcessUsage:
    """Measure what a process and its living descendants use, including the time of those they have waited for.

    Memory is the sum of their sizes and of the unnamed files that they hold open, some of which may be counted twice.
    """
    fields_by_pid = _list_descendants(pid)
    ticks = sum(int(number) for fields in fields_by_pid.values() for number in fields[11:15])
    resident = sum(int(fields[21]) * PAGE for fields in fields_by_pid.values())
    return ProcessUsage(len(fields_by_pid), ticks / TICKS, resident + sum(_find_unnamed_files(fields_by_pid).values()))


def measure_exact_memory(pid: int) -> int:
    """Return the bytes that they use together, with shared memory counted once; 0 for unreadable processes.

    An unnamed file that is neither open nor mapped at that moment (on its way between processes) is not seen.
    """
    fields_by_pid = _list_descendants(pid)
    open_files = _find_unnamed_files(fields_by_pid)
    return sum(open_files.values()) + sum(_measure_mapped(member, open_files) for member in fields_by_pid)


def _measure_mapped(pid: int, open_files: Collection[int]) -> int:
    """Return a process's part of its mapped memory, without the unnamed files that are counted as files."""
    total = 0
    is_skipped = False
    with contextlib.suppress(OSError, ValueError, IndexError):
        name = "smaps" if open_files else "smaps_rollup"  # the second is the sum of the first, and much faster
        for line in Path(PROC, str(pid), name).read_text(errors="replace").splitlines():
            if line.startswith("Pss:"):
                total += 0 if is_skipped else int(line.split()[1]) * 1024
            elif line[0] in HEXADECIMAL:  # a mapping begins; the names of its properties are capitalized
                is_skipped = NAMELESS in line and int(line.split()[4]) in open_files
    return total


def _find_unnamed_files(pids: Iterable[int]) -> dict[int, int]:
    """Return the sizes of files that exist only in memory, by inode, if some process has them open."""
    sizes: dict[int, int] = {}
    for pid in pids:
        folder = f"{PROC}/{pid}/fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208 (it is walked several times a second)
                path = f"{folder}/{name}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(NAMELESS):  # noqa: PTH115 (the same)
                        info = os.stat(path)  # noqa: PTH116 (the same)
                        sizes[info.st_ino] = info.st_blocks * 512
    return sizes


def _list_descendants(pid: int) -> dict[int, list[str]]:
    """Return a process and its descendants, each with its fields of `/proc/PID/stat` from the state on."""
    descendants: dict[int, list[str]] = {}
    pending = [pid]
    while pending:
        current = pending.pop()
        if current in descendants:
            continue
        with contextlib.suppress(OSError):
            fields = Path(PROC, str(current), "stat").read_text(errors="replace").rpartition(")")[2].split()
            descendants[current] = fields
            pending += _list_children(current)
    return descendants


def _list_children(pid: int) -> list[int]:
    """Return the children of all threads of a process. Raises `OSError` if it is gone."""
    if not _can_list_children():
        return _find_children_by_parent(pid)
    children: list[int] = []
    folder = f"{PROC}/{pid}/task"
    for thread in os.listdir(folder):  # noqa: PTH208 (it is walked several times a second)
        with contextlib.suppress(OSError):
            children += map(int, Path(folder, thread, "children").read_text().split())
    return children


@functools.cache
def _can_list_children() -> bool:
    return Path(PROC, "thread-self", "children").exists()


def _find_children_by_parent(pid: int) -> list[int]:
    """Return the same by reading the parent of every process of the machine."""
    children: list[int] = []
    for name in os.listdir(PROC):  # noqa: PTH208 (it is walked several times a second)
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(PROC, name, "stat").read_text(errors="replace").rpartition(")")[2].split()
                children += [int(name)] if int(fields[1]) == pid else []
    return children
