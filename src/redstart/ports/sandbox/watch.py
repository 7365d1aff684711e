"""Watches what all processes of one execution use together, as far as no group of the kernel's bounds it already."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox.cgroups import Group

PAUSE = 0.2
DISK_EVERY = 5
"""In pauses: a walk through a workspace takes its time."""
SLACK = 2.0
"""Seconds of processor time: a single process that spends too much is ended by its own limit, which tells more."""
OWN_PROCESSES = 3
"""Of the sandbox itself, around the command."""
PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Used(NamedTuple):
    """What a process and its descendants use now."""

    processes: int = 0
    cpu: float = 0.0
    memory: int = 0


class Stored(NamedTuple):
    """What lies in some folders."""

    size: int = 0
    files: int = 0


class Watchman:
    """Looks after one execution, from time to time.

    Where there is a `group`, only processor time is looked at: the kernel sees to the rest. `folders` are those on the
    host's disk that the command can fill; none where it writes to a file system that is bounded itself.
    """

    def __init__(self, limits: SandboxLimits, *, group: Group | None, folders: Sequence[Path] = ()) -> None:
        self._limits = limits
        self._group = group
        self._folders = folders
        self._before = stored(folders)

    async def watch(self, pid: int) -> ExitCause:
        """Returns when a limit is met that the kernel does not see to, and says which."""
        for turn in range(1, 1 << 62):
            await asyncio.sleep(PAUSE)
            met = self._met(pid)
            if met is None and turn % DISK_EVERY == 0:
                met = self.disk()
            if met:
                return met
        raise AssertionError("time is over")

    def _met(self, pid: int) -> ExitCause | None:
        if self._group:
            return ExitCause.cpu if self._group.cpu() > self._limits.cpu + SLACK else None
        used = family(pid)
        if used.cpu > self._limits.cpu + SLACK:
            return ExitCause.cpu
        if used.processes > self._limits.processes + OWN_PROCESSES:
            return ExitCause.processes
        # Pages that several share are in each one's size: the exact sum is dear, so it is made only on suspicion.
        if used.memory > self._limits.memory and exact_memory(pid) > self._limits.memory:
            return ExitCause.memory
        return None

    def disk(self) -> ExitCause | None:
        """Whether more lies in the folders than was there before and is allowed."""
        if not self._folders:
            return None
        now = stored(self._folders)
        too_much = now.size - self._before.size > self._limits.disk
        return ExitCause.disk if too_much or now.files - self._before.files > self._limits.inodes else None


def stored(folders: Sequence[Path]) -> Stored:
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
    return Stored(size, files)


def family(pid: int) -> Used:
    """What a process and its living descendants use, with the time of those that they have waited for."""
    return _sum(_descendants(pid))


def exact_memory(pid: int) -> int:
    """Bytes that they use together, with what several share counted once; 0 for those that may not be asked."""
    total = 0
    for each in _descendants(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path(PROC, str(each), "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def _sum(about: dict[int, list[str]]) -> Used:
    ticks = sum(int(number) for fields in about.values() for number in fields[11:15])
    return Used(len(about), ticks / TICKS, sum(int(fields[21]) * PAGE for fields in about.values()))


def _descendants(pid: int) -> dict[int, list[str]]:
    """A process and its descendants, each with what `/proc` tells of it from its state on."""
    every: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for name in os.listdir(PROC) if PROC.is_dir() else ():  # noqa: PTH208 (it is walked several times a second)
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(PROC, name, "stat").read_text(errors="replace").rpartition(")")[2].split()
                every[int(name)] = fields
                children.setdefault(int(fields[1]), []).append(int(name))
    found: dict[int, list[str]] = {}
    left = [pid]
    while left:
        each = left.pop()
        if each in every and each not in found:
            found[each] = every[each]
            left += children.get(each, [])
    return found
