"""Watches a running attack from the host through the kernel. A token identifies its processes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

KINDS = ("[io_uring]", "[userfaultfd]", "[perf_event]", "[fanotify]", "bpf-map", "bpf-prog", "/dev/mem", "/dev/kvm")
PLACES = ("cwd", "root/tmp", "root/dev/shm", "root/run", "root/home")
EVERY = 0.03


class Watch:
    """Records the maximum of every measurement while it is entered, and watches the agent for a debugger."""

    def __init__(self, token: str, agent: int, disk: Path) -> None:
        self._token, self._agent, self._disk = token.encode(), agent, disk
        self._known = frozenset(list_pids())
        self._disks = list_host_disks()
        self._base = measure_used_space(disk)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.processes = self.memory = self.disk = self.inodes = 0
        self.descriptors: set[str] = set()
        self._namespaces: dict[int, int] = {}
        """Process namespaces by number; an open descriptor keeps the kernel from reusing the number."""
        self.nested = self.traced = self.raised = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def list_survivors(self) -> list[int]:
        """List live processes that have the token or are in a process namespace of one that had it."""
        return [
            pid
            for pid in self._list_new_pids()
            if is_alive(pid) and (self._has_token(pid) or self._is_in_known_namespace(pid))
        ]

    def _is_in_known_namespace(self, pid: int) -> bool:
        return read_namespace(pid, "pid") in self._namespaces

    def close(self) -> None:
        while self._namespaces:
            os.close(self._namespaces.popitem()[1])

    def _remember(self, pid: int, own_namespace: int) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            number = os.fstat(descriptor).st_ino
            if number == own_namespace or number in self._namespaces:
                os.close(descriptor)
            else:
                self._namespaces[number] = descriptor

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            self.measure()

    def measure(self) -> None:
        attack_pids = [pid for pid in self._list_new_pids() if self._has_token(pid)]
        own_namespace = read_namespace(os.getpid(), "pid")
        threads = memory = shared_memory = 0
        files: dict[tuple[int, int], int] = {}
        for pid in attack_pids:
            process_status = read_status(pid)
            threads += int(process_status.get("Threads", "0"))
            memory += parse_kilobytes(process_status, "RssAnon")
            shared_memory = max(shared_memory, parse_kilobytes(process_status, "RssShmem"))
            self._remember(pid, own_namespace)
            self._check_privileges(pid, process_status)
            self._check_descriptors(pid, files)
            self._measure_file_systems(pid, files)
        self.processes = max(self.processes, threads)
        self.memory = max(self.memory, memory + shared_memory + sum(files.values()))
        self._measure_disk(self._disk)
        self.traced = self.traced or read_status(self._agent).get("TracerPid", "0") != "0"

    def _check_privileges(self, pid: int, process_status: dict[str, str]) -> None:
        real_uid, effective = process_status.get("Uid", "0 0").split()[:2]
        self.raised = self.raised or real_uid != effective
        parent = int(process_status.get("PPid", "0"))
        parent_name = read_status(parent).get("Name", "bwrap")
        if parent_name not in ("bwrap", "setpriv") and self._has_token(parent):
            users = read_namespace(pid, "user"), read_namespace(parent, "user")
            self.nested = self.nested or (0 not in users and users[0] != users[1])

    def _check_descriptors(self, pid: int, files: dict[tuple[int, int], int]) -> None:
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    led = str(path.readlink())
                    self.descriptors.update(kind for kind in KINDS if kind in led)
                    if led.startswith("/memfd:"):
                        file_stat = path.stat()
                        files[file_stat.st_dev, file_stat.st_ino] = file_stat.st_blocks * 512

    def _measure_file_systems(self, pid: int, files: dict[tuple[int, int], int]) -> None:
        """Measure the file systems that only the attack has: their files are memory or the workspace's own disk."""
        for name in PLACES:
            with contextlib.suppress(OSError):
                path = Path(f"/proc/{pid}", name)
                device = path.stat().st_dev
                shared_devices = (self._disk.stat().st_dev, Path("/dev/shm").stat().st_dev)
                if device not in shared_devices and measure_capacity(path) not in self._disks:
                    used, count = measure_used_space(path)
                    files[device, 0] = used
                    if name == "cwd":
                        self.disk, self.inodes = max(self.disk, used), max(self.inodes, count)

    def _measure_disk(self, path: Path) -> None:
        used, count = measure_used_space(path)
        self.disk, self.inodes = max(self.disk, used - self._base[0]), max(self.inodes, count - self._base[1])

    def _list_new_pids(self) -> list[int]:
        return [pid for pid in list_pids() if pid not in self._known and pid != self._agent]

    def _has_token(self, pid: int) -> bool:
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                if self._token in Path(f"/proc/{pid}/{name}").read_bytes():
                    return True
        return False


def list_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def read_status(pid: int) -> dict[str, str]:
    """Read the kernel's status of a process; empty if there is no such process."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}


def parse_kilobytes(process_status: dict[str, str], name: str) -> int:
    return int(process_status.get(name, "0 kB").split()[0]) << 10


def read_namespace(pid: int, kind: str) -> int:
    """Return the number of a process's namespace; 0 if it cannot be read."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/ns/{kind}").stat().st_ino
    return 0


def is_alive(pid: int) -> bool:
    return read_status(pid).get("State", "X")[0] not in "XZ"


def measure_used_space(path: Path) -> tuple[int, int]:
    """Return the bytes and files in use on a file system."""
    stats = os.statvfs(path)
    return (stats.f_blocks - stats.f_bfree) * stats.f_frsize, stats.f_files - stats.f_ffree


def measure_capacity(path: Path) -> tuple[int, int]:
    """Return the capacity of a file system in bytes and files. An overlay has the capacity of its upper file system."""
    stats = os.statvfs(path)
    return stats.f_blocks * stats.f_frsize, stats.f_files


def list_host_disks() -> set[tuple[int, int]]:
    """List the capacities of the host's real disks; a capacity identifies a disk under any name."""
    capacities = {measure_capacity(Path("/"))}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, place = line.split()[:2]
        with contextlib.suppress(OSError):
            if source.startswith("/dev/"):
                capacities.add(measure_capacity(Path(place)))
    return capacities


def wait_for_survivors(watch: Watch, *, grace: float = 0.2) -> list[int]:
    """List survivors after giving dying processes a moment to end."""
    deadline = time.monotonic() + grace
    while (survivors := watch.list_survivors()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return survivors
