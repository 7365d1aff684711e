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
        self._known = frozenset(pids())
        self._disks = host_disks()
        self._base = space(disk)
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

    def survivors(self) -> list[int]:
        """List live processes that have the token or are in a process namespace of one that had it."""
        return [pid for pid in self._new() if is_alive(pid) and (self._marked(pid) or self._inside(pid))]

    def _inside(self, pid: int) -> bool:
        return namespace(pid, "pid") in self._namespaces

    def close(self) -> None:
        while self._namespaces:
            os.close(self._namespaces.popitem()[1])

    def _remember(self, pid: int, own: int) -> None:
        with contextlib.suppress(OSError):
            held = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            number = os.fstat(held).st_ino
            if number == own or number in self._namespaces:
                os.close(held)
            else:
                self._namespaces[number] = held

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            self.look()

    def look(self) -> None:
        mine = [pid for pid in self._new() if self._marked(pid)]
        own = namespace(os.getpid(), "pid")
        threads = memory = shared = 0
        files: dict[tuple[int, int], int] = {}
        for pid in mine:
            about = status(pid)
            threads += int(about.get("Threads", "0"))
            memory += kilobytes(about, "RssAnon")
            shared = max(shared, kilobytes(about, "RssShmem"))
            self._remember(pid, own)
            self._privileges(pid, about)
            self._opened(pid, files)
            self._places(pid, files)
        self.processes = max(self.processes, threads)
        self.memory = max(self.memory, memory + shared + sum(files.values()))
        self._filled(self._disk)
        self.traced = self.traced or status(self._agent).get("TracerPid", "0") != "0"

    def _privileges(self, pid: int, about: dict[str, str]) -> None:
        real, effective = about.get("Uid", "0 0").split()[:2]
        self.raised = self.raised or real != effective
        parent = int(about.get("PPid", "0"))
        before = status(parent).get("Name", "bwrap")
        if before not in ("bwrap", "setpriv") and self._marked(parent):
            users = namespace(pid, "user"), namespace(parent, "user")
            self.nested = self.nested or (0 not in users and users[0] != users[1])

    def _opened(self, pid: int, files: dict[tuple[int, int], int]) -> None:
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    led = str(path.readlink())
                    self.descriptors.update(kind for kind in KINDS if kind in led)
                    if led.startswith("/memfd:"):
                        about = path.stat()
                        files[about.st_dev, about.st_ino] = about.st_blocks * 512

    def _places(self, pid: int, files: dict[tuple[int, int], int]) -> None:
        """Measure the file systems that only the attack has: their files are memory or the workspace's own disk."""
        for name in PLACES:
            with contextlib.suppress(OSError):
                path = Path(f"/proc/{pid}", name)
                device = path.stat().st_dev
                shared = (self._disk.stat().st_dev, Path("/dev/shm").stat().st_dev)
                if device not in shared and size(path) not in self._disks:
                    used, count = space(path)
                    files[device, 0] = used
                    if name == "cwd":
                        self.disk, self.inodes = max(self.disk, used), max(self.inodes, count)

    def _filled(self, path: Path) -> None:
        used, count = space(path)
        self.disk, self.inodes = max(self.disk, used - self._base[0]), max(self.inodes, count - self._base[1])

    def _new(self) -> list[int]:
        return [pid for pid in pids() if pid not in self._known and pid != self._agent]

    def _marked(self, pid: int) -> bool:
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                if self._token in Path(f"/proc/{pid}/{name}").read_bytes():
                    return True
        return False


def pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def status(pid: int) -> dict[str, str]:
    """Read the kernel's status of a process; empty if there is no such process."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}


def kilobytes(about: dict[str, str], name: str) -> int:
    return int(about.get(name, "0 kB").split()[0]) << 10


def namespace(pid: int, kind: str) -> int:
    """Return the number of a process's namespace; 0 if it cannot be read."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/ns/{kind}").stat().st_ino
    return 0


def is_alive(pid: int) -> bool:
    return status(pid).get("State", "X")[0] not in "XZ"


def space(path: Path) -> tuple[int, int]:
    """Return the bytes and files in use on a file system."""
    about = os.statvfs(path)
    return (about.f_blocks - about.f_bfree) * about.f_frsize, about.f_files - about.f_ffree


def size(path: Path) -> tuple[int, int]:
    """Return the capacity of a file system in bytes and files. An overlay has the capacity of its upper file system."""
    about = os.statvfs(path)
    return about.f_blocks * about.f_frsize, about.f_files


def host_disks() -> set[tuple[int, int]]:
    """List the capacities of the host's real disks; a capacity identifies a disk under any name."""
    found = {size(Path("/"))}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, place = line.split()[:2]
        with contextlib.suppress(OSError):
            if source.startswith("/dev/"):
                found.add(size(Path(place)))
    return found


def still_alive(watch: Watch, *, grace: float = 0.2) -> list[int]:
    """List survivors after giving dying processes a moment to end."""
    over = time.monotonic() + grace
    while (found := watch.survivors()) and time.monotonic() < over:
        time.sleep(0.01)
    return found
