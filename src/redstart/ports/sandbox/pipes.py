"""The pipes to and from bubblewrap. The command inside has access to none of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from pathlib import Path

from redstart.ports.sandbox.launch import kill_group
from redstart.ports.sandbox.stage import OUTWARD

CHUNK_BYTES = 1 << 16
FULL_BYTES, FULL_FILES = 1 << 16, 8


class BubblewrapPipes:
    """On `status` bubblewrap reports what it does; it starts nothing before the gate is open.

    What is fed to it becomes files inside.
    """

    def __init__(self) -> None:
        self._source, self.status = os.pipe()
        os.set_blocking(self._source, False)
        self.gate, self._opener = os.pipe()
        self.fds = [self.status, self.gate]
        self._status_data = b""
        self.output_fd: int | None = None
        """The command's output folder, if it is on a file system of the sandbox's own. It is held open, since otherwise
        it would disappear with the sandbox."""

    def __enter__(self) -> BubblewrapPipes:
        return self

    def __exit__(self, *_: object) -> None:
        output_fds = () if self.output_fd is None else (self.output_fd,)
        for fd in (self._source, self._opener, *output_fds, *self.fds):
            os.close(fd)

    def feed(self, content: bytes) -> int:
        """Return a descriptor from which a short text can be read. The text must fit into a pipe."""
        source, sink = os.pipe()
        self.fds.append(source)
        try:
            os.write(sink, content[:CHUNK_BYTES])
        finally:
            os.close(sink)
        return source

    def open_gate(self) -> None:
        os.write(self._opener, b".")

    async def admit(self, monitor: int, *, staged: bool) -> None:
        """Wait until the sandbox exists, open what must outlive it, and let the command start."""
        loop, data_event = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._source, data_event.set)
        try:
            while not self.has_begun:
                data_event.clear()
                await data_event.wait()
        finally:
            loop.remove_reader(self._source)
        if staged:
            with contextlib.suppress(OSError):  # the sandbox has died meanwhile
                self.output_fd = os.open(f"/proc/{monitor}/root{OUTWARD}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.open_gate()

    @property
    def has_begun(self) -> bool:
        """Whether the sandbox was made."""
        return self._find_first_pid() is not None

    @property
    def command_ended(self) -> bool:
        """Whether the command was started and its end was seen; otherwise the exit code is bubblewrap's."""
        return b'"exit-code"' in self._read_status()

    @property
    def disk_full(self) -> bool:
        """Whether the sandbox's own file system has no room left."""
        if self.output_fd is None:
            return False
        stats = os.fstatvfs(self.output_fd)
        return stats.f_bavail * stats.f_frsize < FULL_BYTES or stats.f_favail < FULL_FILES

    def kill(self, monitor: int) -> None:
        """Kill everything that runs inside, by killing its process 1.

        The monitor on the outside then waits until the namespace is empty, and ends by itself. If the monitor were
        killed instead, the rest would die too, but some time later.
        """
        first_pid = self._find_first_pid()
        if first_pid and _get_parent_pid(first_pid) == monitor:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first_pid, signal.SIGKILL)
        else:
            kill_group(monitor)

    def _find_first_pid(self) -> int | None:
        """Return the ID of the sandbox's process 1 outside of it. The text may come in pieces."""
        match = re.search(rb'"child-pid": *(\d+)[^\d]', self._read_status())
        return int(match[1]) if match else None

    def _read_status(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            self._status_data += os.read(self._source, 1 << 16)
        return self._status_data


def _get_parent_pid(pid: int) -> int:
    """Return the parent of a process; 0 if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])
