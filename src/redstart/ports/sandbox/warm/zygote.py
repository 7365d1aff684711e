"""The host's side of a warm sandbox for pytest; `inside_zygote.py` is the other side.

The process inside is started once. Each execution is then a fork of it in namespaces of its own, with a workspace,
temporary folders, network and group of its own. Two executions share nothing except the memory of the process that both
were forked from, and that process has never seen a file of the project.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePosixPath
from posixpath import join, normpath
from typing import Any, Protocol

from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox import seccomp
from redstart.ports.sandbox.cgroups import Cgroup, GroupUsage
from redstart.ports.sandbox.exchange import Exchange, given, placed, variables
from redstart.ports.sandbox.launch import ClippedStream, LaunchEnd, drain, draining, readable, until
from redstart.ports.sandbox.mounts import SHARED, TEMPORARY
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.sandbox.stage import bounded
from redstart.ports.sandbox.watch import ExecutionWatch
from redstart.ports.sandbox.wires import FULL_BYTES, FULL_FILES

RUNS, STAGE = "/run/redstart/runs", "/run/redstart/stage"
CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SETPCAP", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
"""Only within its own user namespace: to make namespaces and mounts for a run, which gets none of these
capabilities."""
NEEDED_CALLS = ("mount", "unshare", "setns")
OWN_PROCESSES = 3
"""Processes besides those of a run, of the same user: they count where the kernel counts by user."""
LATE = ("PYTEST_ADDOPTS", "TZ")
"""Variables that pytest and the C library read when a run begins; so do ours, whose names begin with `OWN_PREFIX`."""
OURS = "REDSTART_"
START_SECONDS, READY_SECONDS = 60.0, 60.0
BURIAL_SECONDS = 5.0
LARGEST_MESSAGE = 4096
FIRST_DESCRIPTOR = 20
"""Of the descriptors that are passed through a shell, which uses low numbers itself."""
CREDENTIALS = struct.Struct("3i")
SCM_CREDENTIALS = 2


def is_pytest(execution: Execution) -> bool:
    """Whether this execution can be a fork of a process that has imported pytest."""
    return execution.argv[:3] == (execution.environment.python, "-m", "pytest")


def settled(execution: Execution) -> dict[str, str]:
    """Return the variables that take effect when an interpreter starts.

    Only executions that agree on them can share one.
    """
    return {name: text for name, text in given(execution).items() if name not in LATE and not name.startswith(OURS)}


def program() -> str:
    """Return the program that runs inside."""
    return (Path(__file__).parent / "inside_zygote.py").read_text(encoding="utf-8")


def call_filter() -> bytes | None:
    """Return the filter for the warm process: as usual, but it may make namespaces and mounts for its runs."""
    machine = seccomp.MACHINES.get(os.uname().machine)
    if machine is None:
        return None
    refused = {name: number for name, number in machine.refused.items() if name not in NEEDED_CALLS}
    return seccomp.assembled(seccomp.instructions(machine._replace(refused=refused)))


def about(execution: Execution, control: int, *, inward: str, outward: str, also: Sequence[str] = ()) -> str:
    """Build the settings that it needs to make runs, as JSON.

    `extra_paths` are paths inside that a run sees unchanged, if they exist, like those of the environment.
    """
    environment, limits = execution.environment, execution.limits
    temporary = {TEMPORARY: "tmp", SHARED: "shm", environment.home: "home"}
    written = (environment.mount, *temporary, "/run")
    hidden = [path for path in environment.read_only if _lies_in(path, written) and Path(path).exists()]
    return json.dumps(
        {
            "control": control,
            "runs": RUNS,
            "stage": STAGE,
            "inward": inward,
            "outward": outward,
            "mount": environment.mount,
            "home": environment.home,
            "temporary": temporary,
            "within": [*hidden, *also],
            "size": bounded(limits),
            "inodes": limits.inodes,
            "filter": base64.b64encode(seccomp.program() or b"").decode(),
        }
    )


@contextlib.contextmanager
def control_wire(handed: list[int]) -> Generator[tuple[socket.socket, int]]:
    """Open the control socket: yield our end and the number of the other end, which is added to `passed_fds`.

    The owner of those descriptors closes it too.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            number = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
        handed.append(number)
        ours.setblocking(False)
        yield ours, number


def let_go(handed: list[int], number: int) -> None:
    """Close one of the descriptors that were passed on, so that only the process inside holds it."""
    handed.remove(number)
    os.close(number)


def make_unreadable(folder: Path) -> None:
    """Make the files of a workspace unreadable.

    The names are enough for the paths that an environment refers to, and reveal no code.
    """
    for top, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(top, name)  # noqa: PTH118 (of thousands of files)
            if not os.path.islink(path):  # noqa: PTH114
                os.chmod(path, 0)  # noqa: PTH101


class Zygote:
    """A process inside a sandbox from which runs are forked. It sees `folder` as `RUNS_FOLDER`."""

    def __init__(self, folder: Path, control: socket.socket) -> None:
        self.folder = folder
        self._control = control

    async def ready(self, life: asyncio.Future[Any]) -> None:
        """Wait until it is ready. Raises `SandboxDied`, with its reason, if it cannot be or ends before."""
        said = asyncio.create_task(self._heard())
        try:
            await asyncio.wait({said, life}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            word = said.result() if said.done() else "it did not become ready"
            if word != "ready":
                raise SandboxDied(f"There is no warm start here: {word or 'it ended'}")
        finally:
            said.cancel()
            await asyncio.wait({said})

    async def _heard(self) -> str:
        await readable(self._control.fileno())
        try:
            return self._control.recv(LARGEST_MESSAGE).decode("utf-8", "replace")
        except OSError as error:
            return str(error)

    async def run(self, execution: Execution, exchanged: Exchange, group: Cgroup | None) -> Completed:
        """Run one fork, as the request in the run's folder says. When it returns, no process of the run is alive.

        Raises `SandboxDied` if the run did not begin, or ended without reporting how.
        """
        began, limits, kept = time.monotonic(), execution.limits, ClippedStream(execution.limits.output)
        with self._asked(exchanged.folder.name) as (source, voice), await _begun(voice) as begun:
            for door in group.doors if group else ():
                _enter(door, begun.pid)
            flooded, watchman = asyncio.Event(), ExecutionWatch(limits, group=group)
            with draining(source, kept, limits.flood, flooded):
                voice.send(b"go")
                stopped = await until(readable(begun.process), limits.wall, flooded, watchman.watch(begun.pid))
                begun.kill()
                await readable(begun.process)
            drain(source, kept)
            if kept.total > limits.flood:
                stopped = ExitCause.output  # even if it ended by itself at the same moment
            used, told = group.usage() if group else GroupUsage(), _told(voice)
            if not told and not stopped and not used.killed_for_memory:
                raise SandboxDied("The warm sandbox ended during a run.")
            ended = LaunchEnd(
                told.get("status", -signal.SIGKILL),
                kept.joined(),
                kept.left_out > 0,
                stopped is ExitCause.timeout,
                time.monotonic() - began,
                max(told.get("cpu", 0.0), used.cpu),
                stopped,
                peak_memory=used.peak_memory or told.get("peak", 0),
                killed_for_memory=used.killed_for_memory,
                refused_processes=used.refused_processes,
                disk_full=is_full(begun.outward),
            )
            return exchanged.completed(ended, begun.outward)

    @contextlib.contextmanager
    def _asked(self, name: str) -> Generator[tuple[int, socket.socket]]:
        """Request a run; yield the source of its output, and its socket."""
        source, sink = os.pipe()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            try:
                with theirs:
                    os.set_blocking(source, False)
                    ours.setblocking(False)
                    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                    socket.send_fds(self._control, [name.encode()], [sink, theirs.fileno()])
                os.close(sink)
                sink = -1
                yield source, ours
            except OSError as error:
                raise SandboxDied(f"The warm sandbox is gone: {error}") from error
            finally:
                os.close(source)
                if sink >= 0:
                    os.close(sink)


class _Begun:
    """The first process of a run, which waits for the signal to start. It is dead at the end of the context."""

    def __init__(self, pid: int, process: int, outward: int) -> None:
        self.pid, self.process, self.outward = pid, process, outward

    def __enter__(self) -> _Begun:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        ended = select.poll()
        ended.register(self.process, select.POLLIN)
        ended.poll(BURIAL_SECONDS * 1000)  # short, since nothing survives the kill
        os.close(self.process)
        os.close(self.outward)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)


async def _begun(voice: socket.socket) -> _Begun:
    """Wait until a run is prepared. The kernel's credentials of the sender identify its process."""
    try:
        await asyncio.wait_for(readable(voice.fileno()), READY_SECONDS)
        room = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(4)
        word, ancillary, _, _ = voice.recvmsg(LARGEST_MESSAGE, room)
    except (TimeoutError, OSError) as error:
        raise SandboxDied(f"A run in the warm sandbox did not begin: {error}") from error
    pid, outward = 0, -1
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            outward = int.from_bytes(data[:4], sys.byteorder)
        elif (level, kind) == (socket.SOL_SOCKET, SCM_CREDENTIALS):
            pid = CREDENTIALS.unpack(data)[0]
    try:
        if word != b"ready" or not pid or outward < 0:
            raise SandboxDied(f"A run in the warm sandbox did not begin: {word.decode('utf-8', 'replace')}")
        return _Begun(pid, os.pidfd_open(pid), outward)
    except BaseException as error:
        if outward >= 0:
            os.close(outward)
        if isinstance(error, OSError):
            raise SandboxDied(f"A run in the warm sandbox ended before it began: {error}") from error
        raise


def _told(voice: socket.socket) -> dict[str, Any]:
    """Read how the program ended from the process that waited for it; empty if it could not report it."""
    try:
        told = json.loads(voice.recv(LARGEST_MESSAGE) or b"{}")
        return {**told, "status": os.waitstatus_to_exitcode(told["status"])} if told else {}
    except (OSError, ValueError):
        return {}


def _enter(door: str, pid: int) -> None:
    try:
        Path(door).write_text(str(pid))
    except OSError as error:
        raise SandboxDied(f"A run in the warm sandbox cannot be bounded: {error}") from error


def is_full(folder: int) -> bool:
    """Whether the file system of an open folder has no room left."""
    room = os.fstatvfs(folder)
    return room.f_bavail * room.f_frsize < FULL_BYTES or room.f_favail < FULL_FILES


def write_request(execution: Execution, exchanged: Exchange, *, inward: str, outward: str) -> None:
    """Write what is to be run into the run's folder."""
    environment = execution.environment
    asked = {name: placed(text, inward, outward) for name, text in given(execution).items()}
    request = {
        "argv": [placed(word, inward, outward) for word in execution.argv],
        "variables": variables(environment.python, asked, home=environment.home, temporary=TEMPORARY),
        "folder": normpath(join(environment.mount, execution.cwd)),
    }
    (exchanged.folder / "request.json").write_text(json.dumps(request), encoding="utf-8")


def _lies_in(path: str, folders: Iterable[str]) -> bool:
    return any(path != folder and PurePosixPath(path).is_relative_to(folder) for folder in folders)


MOST_STARTS = 3
OTHER_DEVICE = "cross-device link"
"""The error that a program gets when it renames a folder of the workspace that a warm sandbox covers with a layer. A
fresh sandbox may be able to do it."""


class WarmProcess(Protocol):
    async def run(self, execution: Execution) -> Completed:
        """Raises `SandboxUnavailable` if it is broken, whatever the execution has done by then."""
        ...


class WarmSession:
    """Runs what it can in the warm process that `start` gives, and everything else, and repetitions, in `fresh`."""

    def __init__(
        self,
        fresh: Sandbox,
        start: Callable[[Execution], AbstractAsyncContextManager[WarmProcess]],
        environment: Environment,
        limits: SandboxLimits,
    ) -> None:
        self._fresh, self._start = fresh, start
        self._environment, self._limits = environment, limits
        self._turn = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._warm: WarmProcess | None = None
        self._settled: dict[str, str] = {}
        self.starts = 0
        """How often a warm process had to be started so far."""
        self.warm_runs = 0
        """How many executions were not run fresh."""

    async def run(self, execution: Execution) -> Completed:
        warm = await self._ready(execution) if self._fits(execution) else None
        try:
            completed = await warm.run(execution) if warm else None
        except SandboxUnavailable:
            await self._discard(warm)
            completed = None
        if completed is None or _needs_fresh(completed):
            return await self._fresh.run(execution)
        self.warm_runs += 1
        return completed

    async def close(self) -> None:
        self._warm = None
        await self._open.aclose()

    def _fits(self, execution: Execution) -> bool:
        environment = execution.environment
        same = environment == self._environment and execution.limits == self._limits
        return same and is_pytest(execution) and not (environment.services or execution.hostname)

    async def _ready(self, execution: Execution) -> WarmProcess | None:
        """Return the warm process if this execution can run in it; start one if there is none yet."""
        async with self._turn:
            if self._warm is None and self.starts < MOST_STARTS:
                self.starts += 1
                self._settled = settled(execution)
                try:
                    self._warm = await self._open.enter_async_context(self._start(execution))
                except SandboxUnavailable:
                    self.starts = MOST_STARTS  # another start would fail too
            return self._warm if settled(execution) == self._settled else None

    async def _discard(self, broken: WarmProcess | None) -> None:
        async with self._turn:
            if self._warm is broken:
                await self.close()
                self._open = contextlib.AsyncExitStack()


def _needs_fresh(completed: Completed) -> bool:
    texts = (completed.output, *completed.files.values())
    return completed.exit_code != 0 and any(OTHER_DEVICE in text for text in texts)
