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
from redstart.ports.sandbox.files import Exchange, build_variables, fill_placeholders, get_requested_variables
from redstart.ports.sandbox.launch import (
    ClippedStream,
    LaunchEnd,
    drain,
    drain_in_background,
    wait_for_end,
    wait_readable,
)
from redstart.ports.sandbox.mounts import SHARED_MEMORY, TEMPORARY
from redstart.ports.sandbox.pipes import FULL_BYTES, FULL_FILES
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.sandbox.stage import get_writable_size
from redstart.ports.sandbox.usage_monitor import ExecutionWatch

RUNS, STAGE = "/run/redstart/runs", "/run/redstart/stage"
CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SETPCAP", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
"""Only within its own user namespace: to make namespaces and mounts for a run, which gets none of these
capabilities."""
NEEDED_CALLS = ("mount", "unshare", "setns")
OWN_PROCESSES = 3
"""Processes besides those of a run, of the same user: they count where the kernel counts by user."""
LATE_VARIABLES = ("PYTEST_ADDOPTS", "TZ")
"""Variables that pytest and the C library read when a run begins; so do ours, whose names begin with `OWN_PREFIX`."""
OWN_PREFIX = "REDSTART_"
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


def get_start_variables(execution: Execution) -> dict[str, str]:
    """Return the variables that take effect when an interpreter starts.

    Only executions that agree on them can share one.
    """
    return {
        name: text
        for name, text in get_requested_variables(execution).items()
        if name not in LATE_VARIABLES and not name.startswith(OWN_PREFIX)
    }


def read_program() -> str:
    """Return the program that runs inside."""
    return (Path(__file__).parent / "inside_zygote.py").read_text(encoding="utf-8")


def call_filter() -> bytes | None:
    """Return the filter for the warm process: as usual, but it may make namespaces and mounts for its runs."""
    machine = seccomp.MACHINES.get(os.uname().machine)
    if machine is None:
        return None
    refused = {name: number for name, number in machine.refused.items() if name not in NEEDED_CALLS}
    return seccomp.assemble(seccomp.build_instructions(machine._replace(refused=refused)))


def build_settings(
    execution: Execution, control: int, *, inward: str, outward: str, extra_paths: Sequence[str] = ()
) -> str:
    """Build the settings that it needs to make runs, as JSON.

    `extra_paths` are paths inside that a run sees unchanged, if they exist, like those of the environment.
    """
    environment, limits = execution.environment, execution.limits
    temporary = {TEMPORARY: "tmp", SHARED_MEMORY: "shm", environment.home: "home"}
    writable = (environment.mount, *temporary, "/run")
    hidden = [path for path in environment.read_only if _is_below(path, writable) and Path(path).exists()]
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
            "within": [*hidden, *extra_paths],
            "size": get_writable_size(limits),
            "inodes": limits.inodes,
            "filter": base64.b64encode(seccomp.build_filter() or b"").decode(),
        }
    )


@contextlib.contextmanager
def control_wire(passed_fds: list[int]) -> Generator[tuple[socket.socket, int]]:
    """Open the control socket: yield our end and the number of the other end, which is added to `passed_fds`.

    The owner of those descriptors closes it too.
    """
    local_end, remote_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with local_end:
        with remote_end:
            number = fcntl.fcntl(remote_end.fileno(), fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
        passed_fds.append(number)
        local_end.setblocking(False)
        yield local_end, number


def close_passed_fd(passed_fds: list[int], number: int) -> None:
    """Close one of the descriptors that were passed on, so that only the process inside holds it."""
    passed_fds.remove(number)
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

    async def wait_until_ready(self, life: asyncio.Future[Any]) -> None:
        """Wait until it is ready. Raises `SandboxDied`, with its reason, if it cannot be or ends before."""
        message_task = asyncio.create_task(self._receive_message())
        try:
            await asyncio.wait({message_task, life}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            message = message_task.result() if message_task.done() else "it did not become ready"
            if message != "ready":
                raise SandboxDied(f"There is no warm start here: {message or 'it ended'}")
        finally:
            message_task.cancel()
            await asyncio.wait({message_task})

    async def _receive_message(self) -> str:
        await wait_readable(self._control.fileno())
        try:
            return self._control.recv(LARGEST_MESSAGE).decode("utf-8", "replace")
        except OSError as error:
            return str(error)

    async def run(self, execution: Execution, file_exchange: Exchange, group: Cgroup | None) -> Completed:
        """Run one fork, as the request in the run's folder says. When it returns, no process of the run is alive.

        Raises `SandboxDied` if the run did not begin, or ended without reporting how.
        """
        began, limits, output = time.monotonic(), execution.limits, ClippedStream(execution.limits.output)
        with (
            self._request_run(file_exchange.folder.name) as (source, run_socket),
            await _wait_for_run(run_socket) as run_process,
        ):
            for procs_file in group.procs_files if group else ():
                _enter(procs_file, run_process.pid)
            flood_event, monitor = asyncio.Event(), ExecutionWatch(limits, group=group)
            with drain_in_background(source, output, limits.flood, flood_event):
                run_socket.send(b"go")
                stop_cause = await wait_for_end(
                    wait_readable(run_process.process), limits.wall, flood_event, monitor.watch(run_process.pid)
                )
                run_process.kill()
                await wait_readable(run_process.process)
            drain(source, output)
            if output.total > limits.flood:
                stop_cause = ExitCause.output  # even if it ended by itself at the same moment
            used, report = group.get_usage() if group else GroupUsage(), _read_report(run_socket)
            if not report and not stop_cause and not used.killed_for_memory:
                raise SandboxDied("The warm sandbox ended during a run.")
            end = LaunchEnd(
                report.get("status", -signal.SIGKILL),
                output.join(),
                output.left_out > 0,
                stop_cause is ExitCause.timeout,
                time.monotonic() - began,
                max(report.get("cpu", 0.0), used.cpu),
                stop_cause,
                peak_memory=used.peak_memory or report.get("peak", 0),
                killed_for_memory=used.killed_for_memory,
                refused_processes=used.refused_processes,
                disk_full=is_full(run_process.output_fd),
            )
            return file_exchange.build_completed(end, run_process.output_fd)

    @contextlib.contextmanager
    def _request_run(self, name: str) -> Generator[tuple[int, socket.socket]]:
        """Request a run; yield the source of its output, and its socket."""
        source, sink = os.pipe()
        local_end, remote_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with local_end:
            try:
                with remote_end:
                    os.set_blocking(source, False)
                    local_end.setblocking(False)
                    local_end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                    socket.send_fds(self._control, [name.encode()], [sink, remote_end.fileno()])
                os.close(sink)
                sink = -1
                yield source, local_end
            except OSError as error:
                raise SandboxDied(f"The warm sandbox is gone: {error}") from error
            finally:
                os.close(source)
                if sink >= 0:
                    os.close(sink)


class _Begun:
    """The first process of a run, which waits for the signal to start. It is dead at the end of the context."""

    def __init__(self, pid: int, process: int, outward: int) -> None:
        self.pid, self.process, self.output_fd = pid, process, outward

    def __enter__(self) -> _Begun:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        poller = select.poll()
        poller.register(self.process, select.POLLIN)
        poller.poll(BURIAL_SECONDS * 1000)  # short, since nothing survives the kill
        os.close(self.process)
        os.close(self.output_fd)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.process, signal.SIGKILL)


async def _wait_for_run(run_socket: socket.socket) -> _Begun:
    """Wait until a run is prepared. The kernel's credentials of the sender identify its process."""
    try:
        await asyncio.wait_for(wait_readable(run_socket.fileno()), READY_SECONDS)
        buffer_size = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(4)
        message, ancillary, _, _ = run_socket.recvmsg(LARGEST_MESSAGE, buffer_size)
    except (TimeoutError, OSError) as error:
        raise SandboxDied(f"A run in the warm sandbox did not begin: {error}") from error
    pid, outward = 0, -1
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            outward = int.from_bytes(data[:4], sys.byteorder)
        elif (level, kind) == (socket.SOL_SOCKET, SCM_CREDENTIALS):
            pid = CREDENTIALS.unpack(data)[0]
    try:
        if message != b"ready" or not pid or outward < 0:
            raise SandboxDied(f"A run in the warm sandbox did not begin: {message.decode('utf-8', 'replace')}")
        return _Begun(pid, os.pidfd_open(pid), outward)
    except BaseException as error:
        if outward >= 0:
            os.close(outward)
        if isinstance(error, OSError):
            raise SandboxDied(f"A run in the warm sandbox ended before it began: {error}") from error
        raise


def _read_report(run_socket: socket.socket) -> dict[str, Any]:
    """Read how the program ended from the process that waited for it; empty if it could not report it."""
    try:
        report = json.loads(run_socket.recv(LARGEST_MESSAGE) or b"{}")
        return {**report, "status": os.waitstatus_to_exitcode(report["status"])} if report else {}
    except (OSError, ValueError):
        return {}


def _enter(procs_file: str, pid: int) -> None:
    try:
        Path(procs_file).write_text(str(pid))
    except OSError as error:
        raise SandboxDied(f"A run in the warm sandbox cannot be bounded: {error}") from error


def is_full(folder: int) -> bool:
    """Whether the file system of an open folder has no room left."""
    stats = os.fstatvfs(folder)
    return stats.f_bavail * stats.f_frsize < FULL_BYTES or stats.f_favail < FULL_FILES


def write_request(execution: Execution, file_exchange: Exchange, *, inward: str, outward: str) -> None:
    """Write the description of the run into the run's folder."""
    environment = execution.environment
    requested = {
        name: fill_placeholders(text, inward, outward) for name, text in get_requested_variables(execution).items()
    }
    request = {
        "argv": [fill_placeholders(argument, inward, outward) for argument in execution.argv],
        "variables": build_variables(environment.python, requested, home=environment.home, temporary=TEMPORARY),
        "folder": normpath(join(environment.mount, execution.cwd)),
    }
    (file_exchange.folder / "request.json").write_text(json.dumps(request), encoding="utf-8")


def _is_below(path: str, folders: Iterable[str]) -> bool:
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
        fresh_sandbox: Sandbox,
        start: Callable[[Execution], AbstractAsyncContextManager[WarmProcess]],
        environment: Environment,
        limits: SandboxLimits,
    ) -> None:
        self._fresh_sandbox, self._start = fresh_sandbox, start
        self._environment, self._limits = environment, limits
        self._turn = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._warm: WarmProcess | None = None
        self._settled_variables: dict[str, str] = {}
        self.starts = 0
        """How often a warm process had to be started so far."""
        self.warm_runs = 0
        """How many executions were not run fresh."""

    async def run(self, execution: Execution) -> Completed:
        warm = await self._get_process(execution) if self._can_run_warm(execution) else None
        try:
            completed = await warm.run(execution) if warm else None
        except SandboxUnavailable:
            await self._discard(warm)
            completed = None
        if completed is None or _needs_fresh(completed):
            return await self._fresh_sandbox.run(execution)
        self.warm_runs += 1
        return completed

    async def close(self) -> None:
        self._warm = None
        await self._open.aclose()

    def _can_run_warm(self, execution: Execution) -> bool:
        environment = execution.environment
        is_same = environment == self._environment and execution.limits == self._limits
        return is_same and is_pytest(execution) and not (environment.services or execution.hostname)

    async def _get_process(self, execution: Execution) -> WarmProcess | None:
        """Return the warm process if this execution can run in it; start one if there is none yet."""
        async with self._turn:
            if self._warm is None and self.starts < MOST_STARTS:
                self.starts += 1
                self._settled_variables = get_start_variables(execution)
                try:
                    self._warm = await self._open.enter_async_context(self._start(execution))
                except SandboxUnavailable:
                    self.starts = MOST_STARTS  # another start would fail too
            return self._warm if get_start_variables(execution) == self._settled_variables else None

    async def _discard(self, broken: WarmProcess | None) -> None:
        async with self._turn:
            if self._warm is broken:
                await self.close()
                self._open = contextlib.AsyncExitStack()


def _needs_fresh(completed: Completed) -> bool:
    texts = (completed.output, *completed.files.values())
    return completed.exit_code != 0 and any(OTHER_DEVICE in text for text in texts)
