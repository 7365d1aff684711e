"""Starts one command, bounds what it may use, and leaves no process of it behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass

from redstart.core.shell import SandboxLimits

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Ended:
    """How a launch ended."""

    returncode: int
    """As of `subprocess`: negative where a signal ended it."""
    output: bytes
    truncated: bool
    timed_out: bool
    wall: float
    cpu: float
    """Seconds of processor time, of the command and of every descendant that was waited for."""


class Kept:
    """The head and the tail of a stream, at most `limit` bytes of it together, whatever its length."""

    def __init__(self, limit: int) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._head_size = limit // 2
        self._tail_size = limit - self._head_size
        self.left_out = 0

    def add(self, chunk: bytes) -> None:
        room = self._head_size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        surplus = len(self._tail) - self._tail_size
        if surplus > 0:
            del self._tail[:surplus]
            self.left_out += surplus

    def joined(self) -> bytes:
        """What was kept, with a line between head and tail that says how much was left out."""
        mark = f"\n[... {self.left_out} bytes left out ...]\n".encode() if self.left_out else b""
        return bytes(self._head) + mark + bytes(self._tail)


def limited(
    limits: SandboxLimits, folder: str, argv: Sequence[str], *, stay: bool = False, before: Sequence[str] = ()
) -> list[str]:
    """An argument list that runs `argv` in `folder` under the limits; exit 127 where either does not exist.

    The limits are set by a shell and not by `preexec_fn`, which is unsafe in a program with threads. A limit that the
    host already holds lower cannot be raised; it stays as it is.

    Memory is bounded by RLIMIT_DATA and not RLIMIT_AS: it counts what can be written to, so that an allocation fails
    just the same, but not address space that is merely reserved (malloc arenas, the heaps of Node and the JVM, files
    mapped read-only). It is a bound for each process; shared memory is outside it.

    With `stay` the shell remains the parent, as process 1 of a namespace must (the kernel ends the namespace with it,
    and a signal's default action does not apply to process 1 itself).

    `before` is a command that has to succeed first, under the same limits; where it does not, exit is 127.
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
    if before:
        script += f"; {shlex.join(before)} || exit 127"
    script += '; cd -- "$1" || exit 127; shift; '
    # A shell that stays must not add its own words ("Killed") to the output, nor take a builtin for the program.
    script += 'exec 3>&2 2>/dev/null; (exec "$@") 2>&3 3>&-; exit $?' if stay else 'exec "$@"'
    return ["/bin/sh", "-c", script, "sh", folder, *argv]


def kill_group(leader: int) -> None:
    """Kills the process group of which `leader` is the leader, if there is still something of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


async def launch(
    argv: Sequence[str],
    *,
    variables: Mapping[str, str],
    limits: SandboxLimits,
    pass_fds: Collection[int] = (),
    kill: Callable[[int], None] = kill_group,
) -> Ended:
    """Runs `argv` in a session of its own, its output merged, until it ends or `limits.wall` is over.

    `kill` is given the process id and ends the whole tree. It is called in every case, also after a normal exit and
    when the task is cancelled; it must be harmless where nothing is left.

    Raises `OSError` where `argv[0]` itself cannot be started.
    """
    began = time.monotonic()
    kept = Kept(limits.output)
    source, sink = os.pipe()
    os.set_blocking(source, False)
    child: subprocess.Popen[bytes] | None = None
    reaped = False
    try:
        try:
            child = _start(argv, variables, sink, pass_fds)
        finally:
            os.close(sink)
        with _draining(source, kept):
            timed_out = not await _exited(child.pid, limits.wall)
            kill(child.pid)
            if timed_out:
                await _exited(child.pid, None)
        returncode, cpu = _reap(child)
        reaped = True
        _drain(source, kept)  # every writer is dead: what they wrote is all there
        return Ended(returncode, kept.joined(), kept.left_out > 0, timed_out, time.monotonic() - began, cpu)
    finally:
        if child and not reaped:  # cancelled; the wait is short, since nothing survives the kill
            kill(child.pid)
            _reap(child)
        os.close(source)


def _start(
    argv: Sequence[str], variables: Mapping[str, str], sink: int, pass_fds: Collection[int]
) -> subprocess.Popen[bytes]:
    # From the event loop's own thread: the kernel ends a program that asked to die with its parent when the *thread*
    # that started it ends, so a worker thread will not do.
    return subprocess.Popen(
        argv,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        start_new_session=True,
        pass_fds=pass_fds,
    )


async def _exited(pid: int, seconds: float | None) -> bool:
    """Whether a child has ended within so many seconds. It is not reaped yet, so that its id stays its own."""
    try:
        async with asyncio.timeout(seconds):
            try:
                pidfd = os.pidfd_open(pid)
            except (AttributeError, OSError):  # a system without such descriptors
                while not _is_over(pid):  # noqa: ASYNC110 (nothing would set an event)
                    await asyncio.sleep(0.01)
                return True
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(pidfd, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(pidfd)
                os.close(pidfd)
    except TimeoutError:
        return False
    return True


def _is_over(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _reap(child: subprocess.Popen[bytes]) -> tuple[int, float]:
    """The exit code of a child that has ended, or is about to, and the processor time of it and its descendants."""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, used.ru_utime + used.ru_stime


@contextlib.contextmanager
def _draining(source: int, kept: Kept) -> Generator[None]:
    """Reads what comes in on `source` while the event loop runs, so that no writer ever waits."""
    loop = asyncio.get_running_loop()

    def some() -> None:
        if not _read(source, kept):
            loop.remove_reader(source)

    loop.add_reader(source, some)
    try:
        yield
    finally:
        loop.remove_reader(source)


def _drain(source: int, kept: Kept) -> None:
    """Takes what is left in the pipe: no more than a pipe holds, in case something outside still writes."""
    for _ in range(16):
        if not _read(source, kept):
            break


def _read(source: int, kept: Kept) -> bool:
    """Takes one chunk. False where there is none now."""
    try:
        chunk = os.read(source, CHUNK)
    except BlockingIOError:
        return False
    kept.add(chunk)
    return bool(chunk)
