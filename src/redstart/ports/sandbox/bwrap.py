"""A sandbox of Linux namespaces, made by bubblewrap: no root, no daemon, about as fast as a bare process."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from posixpath import join

from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution
from redstart.ports.sandbox.exchange import Exchange, exchange, given, placed, variables
from redstart.ports.sandbox.launch import Ended, kill_group, launch, limited
from redstart.ports.sandbox.mounts import HOST_NAME, TEMPORARY, USER, etc_files, mount_arguments
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.prepare import bring_copies, make_git
from redstart.ports.sandbox.services import INSIDE, Relays, Slots, relayed

PROGRAM = "/usr/bin/bwrap"
"""The system's own comes first: Ubuntu allows user namespaces by the program's path."""
INWARD, OUTWARD, OBJECTS = "/run/redstart/in", "/run/redstart/out", "/run/redstart/objects"
OLDEST = (0, 5)
BOUNDED_TMPFS = (0, 7)
NESTING_OFF = (0, 8)
PROBE_SECONDS = 10.0

INSTALL = "Install bubblewrap: `apt install bubblewrap`, or `dnf install bubblewrap`."
APPARMOR = (
    "AppArmor forbids user namespaces here. Give bubblewrap a profile that allows them (Ubuntu: `apt install "
    "apparmor-profiles`, then load its bwrap-userns-restrict), or, for the whole machine, "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
)
NAMESPACES = (
    "User namespaces are switched off here. Allow them with `sysctl -w kernel.unprivileged_userns_clone=1` and "
    "`sysctl -w user.max_user_namespaces=15000`; in a container, start it so that namespaces can be made."
)


class Bubblewrap:
    """Runs each command in fresh namespaces on a copy of the snapshot. It shares the host's kernel.

    Memory is bounded for each process, not for all together, and the disk that the workspace may fill is not bounded.
    """

    tier = "bwrap"

    def __init__(self, workspaces: Workspaces, scratch: Path) -> None:
        self._workspaces = workspaces
        self._scratch = scratch
        self._slots = Slots()

    async def run(self, execution: Execution) -> Completed:
        with (
            exchange(self._scratch, execution) as exchanged,
            self._workspaces.checkout(execution.snapshot) as workspace,
            Wires() as wires,
        ):
            bring_copies(execution.environment, workspace)
            async with relayed(execution.environment.services, exchanged.folder / "services", self._slots) as relays:
                argv = arguments(execution, exchanged, workspace, wires, relays)
                ended = await _launched(argv, execution, wires)
            started = wires.command_ended and (relays is None or relays.ready)
            if not started and not ended.timed_out:
                raise _unavailable(ended.returncode, ended.output)
            return exchanged.completed(ended)


async def _launched(argv: list[str], execution: Execution, wires: Wires) -> Ended:
    try:
        # Bubblewrap itself gets no variable of the request: the loader would obey some of them on the host.
        return await launch(argv, variables={}, limits=execution.limits, pass_fds=wires.fds, kill=wires.kill)
    except OSError as error:
        raise SandboxUnavailable(f"bubblewrap cannot be started: {error}", remedy=INSTALL) from error


class Wires:
    """The pipes to and from bubblewrap, of which the command inside has no end.

    On `status` it says of itself what it does; what is fed to it becomes files inside.
    """

    def __init__(self) -> None:
        self._source, self.status = os.pipe()
        os.set_blocking(self._source, False)
        self.fds = [self.status]
        self._heard = b""

    def __enter__(self) -> Wires:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self._source, *self.fds):
            os.close(fd)

    def feed(self, text: str) -> int:
        """A descriptor from which a short text can be read."""
        source, sink = os.pipe()
        self.fds.append(source)
        try:
            os.write(sink, text.encode())
        finally:
            os.close(sink)
        return source

    @property
    def command_ended(self) -> bool:
        """Whether the command was started and its end was seen; otherwise the exit code is bubblewrap's own."""
        return b'"exit-code"' in self._hear()

    def kill(self, monitor: int) -> None:
        """Ends all that runs inside, by ending its process 1.

        The monitor on the outside then waits until the namespace is empty, and ends by itself. Were the monitor
        killed instead, the rest would die too, but some time later.
        """
        found = re.search(rb'"child-pid": *(\d+)', self._hear())
        first = int(found[1]) if found else 0
        if first and _parent(first) == monitor:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        else:
            kill_group(monitor)

    def _hear(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            self._heard += os.read(self._source, 1 << 16)
        return self._heard


def arguments(
    execution: Execution, exchanged: Exchange, workspace: Path, wires: Wires, relays: Relays | None = None
) -> list[str]:
    """The whole argument list. Raises `SandboxUnavailable` where there is no bubblewrap that can be used."""
    program, version = find_bubblewrap()
    environment, limits = execution.environment, execution.limits
    asked = {name: placed(value, INWARD, OUTWARD) for name, value in given(execution).items()}
    inside = variables(environment.python, asked, home=environment.home, temporary=TEMPORARY)
    argv = [placed(argument, INWARD, OUTWARD) for argument in execution.argv]
    return [
        program,
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--uid", str(USER), "--gid", str(USER), "--hostname", HOST_NAME),
        *(("--disable-userns",) if version >= NESTING_OFF else ()),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"),
        *("--json-status-fd", str(wires.status)),
        "--clearenv",
        *(argument for name, value in inside.items() for argument in ("--setenv", name, value)),
        *mount_arguments(
            environment,
            limits,
            workspace=workspace.resolve(),
            folders={
                INWARD: (exchanged.inward, False),
                OUTWARD: (exchanged.outward, True),
                **_history(environment, exchanged),
                **({INSIDE: (relays.folder, False)} if relays else {}),
            },
            etc={name: wires.feed(text) for name, text in etc_files(environment.home).items()},
            sized=version >= BOUNDED_TMPFS,
        ),
        *("--chdir", "/", "--"),
        *limited(
            limits,
            join(environment.mount, execution.cwd),
            argv,
            stay=True,
            before=relays.command(environment.python) if relays else (),
        ),
    ]


def _history(environment: Environment, exchanged: Exchange) -> dict[str, tuple[Path, bool]]:
    """What to mount for git: a git folder of the sandbox's own, which may be written to, and the real objects."""
    folder = exchanged.folder / "git"
    if not make_git(environment, folder, objects=OBJECTS):
        return {}
    return {OBJECTS: (Path(environment.git_objects), False), join(environment.mount, ".git"): (folder, True)}


@functools.cache
def find_bubblewrap() -> tuple[str, tuple[int, ...]]:
    """The program and its version. Raises `SandboxUnavailable` where it is missing, broken or too old."""
    program = PROGRAM if os.access(PROGRAM, os.X_OK) else shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable("bubblewrap (`bwrap`) is not installed.", remedy=INSTALL)
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(f"bubblewrap cannot be started: {error}", remedy=INSTALL) from error
    version = tuple(int(number) for number in re.findall(r"\d+", said.stdout)[:3])
    if version < OLDEST:
        raise SandboxUnavailable(f"{said.stdout.strip()} is too old; 0.5 or newer is needed.", remedy=INSTALL)
    return program, version


def probe(scratch: Path) -> None:
    """Runs `/bin/true` with every flag that an execution gets. Raises `SandboxUnavailable`, with the remedy."""
    with tempfile.TemporaryDirectory(prefix="redstart-probe-") as folder:
        snapshot = Snapshot(tree="", base="", pack="")
        environment = Environment(mount=folder, python="/usr/bin/python3")
        execution = Execution(argv=("/bin/true",), snapshot=snapshot, environment=environment)
        with exchange(scratch, execution) as exchanged, Wires() as wires:
            argv = arguments(execution, exchanged, Path(folder), wires)
            try:
                ran = subprocess.run(
                    argv,
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=wires.fds,
                    timeout=PROBE_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise SandboxUnavailable(f"bubblewrap does not work here: {error}") from error
            if ran.returncode != 0:
                raise _unavailable(ran.returncode, ran.stdout)


def _unavailable(returncode: int, output: bytes) -> SandboxUnavailable:
    words = output.decode("utf-8", "replace").strip()[-500:] or f"it ended with {returncode}"
    return SandboxUnavailable(f"The sandbox could not be started or died: {words}", remedy=remedy_for(words))


def remedy_for(words: str, *, restricted: Path = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) -> str:
    """What to do about bubblewrap's complaint, as far as it is a known one."""
    denied = ("uid map", "namespace", "RTM_NEWADDR", "Operation not permitted", "Permission denied")
    if not any(each in words for each in denied):
        return ""
    with contextlib.suppress(OSError):
        if restricted.read_text().strip() == "1":
            return APPARMOR
    return NAMESPACES


def _parent(pid: int) -> int:
    """The parent of a process; 0 where there is no such process."""
    try:
        about = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(about.rpartition(")")[2].split()[1])
