"""Start one command, limit what it may use, and leave none of its processes behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from redstart.core.shell import ExitCause, SandboxLimits

OutputListener = Callable[[bytes], None]

_listener: ContextVar[OutputListener | None] = ContextVar("output_listener", default=None)


@contextmanager
def listen_to_output(listener: OutputListener) -> Generator[None]:
    """Pass the output of every execution to `listener` as soon as it is read, until the end of the context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def get_current_listener() -> OutputListener | None:
    """Return the listener of the execution that begins now."""
    return _listener.get()


CHUNK = 1 << 16
RSS_UNIT = 1 if sys.platform == "darwin" else 1024

Watch = Callable[[int], Coroutine[None, None, ExitCause]]
"""Given the process ID, it returns when the command has to be ended, and says why. It is cancelled at the end."""


@dataclass(frozen=True, slots=True)
class LaunchEnd:
    """How a launch ended."""

    returncode: int
    """As in `subprocess`: negative if a signal ended it."""
    output: bytes
    truncated: bool
    timed_out: bool
    wall: float
    cpu: float
    """Seconds of processor time of the command and every descendant that was waited for."""
    stop_cause: ExitCause | None = None
    """Why it was ended from outside; None if it ended by itself."""
    peak_memory: int = 0
    """Bytes of the largest of those processes; of all together if a control group has counted them."""
    killed_for_memory: int = 0
    """How many processes the kernel killed to enforce the limit."""
    refused_processes: int = 0
    """How often the kernel refused to start another process."""
    disk_full: bool = False
    """Whether a bounded file system of the execution was full at the end."""


class ClippedStream:
    """The head and the tail of a stream, together at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._head_size = limit // 2
        self._tail_size = limit - self._head_size
        self._listener = get_current_listener()
        self.left_out = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        if self._listener is not None:
            self._listener(chunk)
        self.total += len(chunk)
        room = self._head_size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = len(self._tail) - self._tail_size
        if surplus > 0:
            del self._tail[:surplus]
            self.left_out += surplus

    def join(self) -> bytes:
        """Return head and tail, with a line between them that says how much was left out."""
        mark = f"\n[... {self.left_out} bytes left out ...]\n".encode() if self.left_out else b""
        return bytes(self._head) + mark + bytes(self._tail)


def build_limited_command(
    limits: SandboxLimits,
    folder: str,
    argv: Sequence[str],
    *,
    keep_shell: bool = False,
    setup_command: Sequence[str] = (),
    count_processes: bool = False,
) -> list[str]:
    """Build an argument list that runs `argv` in `folder` under the limits; exit 127 if either does not exist.

    The limits are set by a shell and not by `preexec_fn`, which is unsafe in a program with threads. A limit that the
    host already holds lower cannot be raised; it stays as it is.

    Memory is bounded by RLIMIT_DATA and not RLIMIT_AS. It counts writable memory, so an allocation fails just the same,
    but not address space that is merely reserved (malloc arenas, the heaps of Node and the JVM, files mapped
    read-only). The bound is for each process; shared memory is outside it.

    With `keep_shell` the shell remains the parent, as process 1 of a namespace must (the kernel ends the namespace with
    it, and a signal's default action does not apply to process 1 itself).

    `setup_command` has to succeed first, under the same limits; if it fails, the exit code is 127.

    With `count_processes` the number of processes is bounded here too. The kernel counts them for each user in each
    user namespace, so this is only useful in a namespace of the command's own.
    """
    blocks, kilobytes = max(limits.file_size // 512, 1), max(limits.memory // 1024, 1)
    settings = (
        "-c 0",
        f"-S -t {limits.cpu}",
        f"-H -t {limits.cpu + 1}",
        f"-f {blocks}",
        f"-d {kilobytes}",
    )
    script = "; ".join(f"ulimit {setting} 2>/dev/null" for setting in settings)
    if count_processes:
        max_processes = limits.processes + 1  # the shell that sets it counts too; bash uses another letter
        script += f"; ulimit -p {max_processes} 2>/dev/null || ulimit -u {max_processes} 2>/dev/null"
    if setup_command:
        script += f"; {shlex.join(setup_command)} || exit 127"
    script += '; cd -- "$1" || exit 127; shift; '
    # A shell that stays must not add its own messages ("Killed") to the output, nor run a builtin for the program.
    script += 'exec 3>&2 2>/dev/null; (exec "$@") 2>&3 3>&-; exit $?' if keep_shell else 'exec "$@"'
    return ["/bin/sh", "-c", script, "sh", folder, *argv]


def kill_group(leader: int) -> None:
    """Kill the process group of `leader`, if any of it is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


async def launch(
    argv: Sequence[str],
    *,
    variables: Mapping[str, str],
    limits: SandboxLimits,
    pass_fds: Collection[int] = (),
    kill: Callable[[int], None] = kill_group,
    watch: Watch | None = None,
) -> LaunchEnd:
    """Run `argv` in its own session, with its output streams merged, until it ends or reaches one of the limits checked
    here.

    These limits are `limits.wall`, `limits.flood`, and those that `watch` checks.

    `kill` is given the process ID and ends the whole tree. It is called in every case, even after a normal exit and
    when the task is cancelled; it must be harmless if nothing is left.

    Raises `OSError` if `argv[0]` itself cannot be started.
    """
    began = time.monotonic()
    output = ClippedStream(limits.output)
    source, sink = os.pipe()
    os.set_blocking(source, False)
    child: subprocess.Popen[bytes] | None = None
    reaped = False
    try:
        try:
            child = _start(argv, variables, sink, pass_fds)
        finally:
            os.close(sink)
        flood_event = asyncio.Event()
        with drain_in_background(source, output, limits.flood, flood_event):
            stop_cause = await wait_for_end(
                _wait_for_exit(child.pid), limits.wall, flood_event, watch(child.pid) if watch else None
            )
            kill(child.pid)
            if stop_cause:
                await _wait_for_exit(child.pid)
        returncode, used = _reap(child)
        reaped = True
        drain(source, output)  # every writer is dead, so all output is there
        if output.total > limits.flood:
            stop_cause = ExitCause.output  # even if it ended by itself at the same moment
        return LaunchEnd(
            returncode,
            output.join(),
            output.left_out > 0,
            stop_cause is ExitCause.timeout,
            time.monotonic() - began,
            used.ru_utime + used.ru_stime,
            stop_cause,
            peak_memory=used.ru_maxrss * RSS_UNIT,
        )
    finally:
        if child and not reaped:  # cancelled; the wait is short, since nothing survives the kill
            kill(child.pid)
            _reap(child)
        os.close(source)


async def wait_for_end(
    end: Coroutine[None, None, None],
    wall: float,
    flood_event: asyncio.Event,
    watch: Coroutine[None, None, ExitCause] | None,
) -> ExitCause | None:
    """Wait until the command ends or must be ended. Return why it must be ended; None if it ended by itself."""
    exited = asyncio.create_task(end)
    flood = asyncio.create_task(flood_event.wait())
    watching = asyncio.create_task(watch) if watch else None
    tasks: set[asyncio.Task[bool] | asyncio.Task[None] | asyncio.Task[ExitCause]] = {exited, flood}
    if watching:
        tasks.add(watching)
    try:
        await asyncio.wait(tasks, timeout=wall, return_when=asyncio.FIRST_COMPLETED)
        if exited.done():
            exited.result()
            return None
        if flood.done():
            return ExitCause.output
        return watching.result() if watching and watching.done() else ExitCause.timeout
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _start(
    argv: Sequence[str], variables: Mapping[str, str], sink: int, pass_fds: Collection[int]
) -> subprocess.Popen[bytes]:
    # Runs in the event loop's own thread: the kernel ends a program that asked to die with its parent when the *thread*
    # that started it ends, so a worker thread does not work.
    return subprocess.Popen(
        argv,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        start_new_session=True,
        pass_fds=pass_fds,
    )


async def _wait_for_exit(pid: int) -> None:
    """Return when a child has ended. It is not reaped yet, so that no other process gets its ID."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # the system has no process descriptors
        while not _is_over(pid):  # noqa: ASYNC110 (nothing would set an event)
            await asyncio.sleep(0.01)
        return
    try:
        await wait_readable(pidfd)
    finally:
        os.close(pidfd)


async def wait_readable(fd: int) -> None:
    """Return when there is something to read; for a process descriptor, when the process has ended."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


def _is_over(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _reap(child: subprocess.Popen[bytes]) -> tuple[int, resource.struct_rusage]:
    """Return the exit code of a child that has ended, or is about to, and what it and its descendants used."""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, used


@contextlib.contextmanager
def drain_in_background(source: int, output: ClippedStream, flood: int, flood_event: asyncio.Event) -> Generator[None]:
    """Read from `source` while the event loop runs, so that no writer ever waits."""
    loop = asyncio.get_running_loop()

    def read_available() -> None:
        if not _read(source, output):
            loop.remove_reader(source)
        if output.total > flood:
            flood_event.set()

    loop.add_reader(source, read_available)
    try:
        yield
    finally:
        loop.remove_reader(source)


def drain(source: int, output: ClippedStream) -> None:
    """Read what is left in the pipe, but no more than a pipe can hold, in case another process is still writing."""
    for _ in range(16):
        if not _read(source, output):
            break


def _read(source: int, output: ClippedStream) -> bool:
    """Read one chunk. False if there is none now."""
    try:
        chunk = os.read(source, CHUNK)
    except BlockingIOError:
        return False
    output.add(chunk)
    return bool(chunk)
