"""A sandbox of Linux namespaces, made by bubblewrap: no root, no daemon, about as fast as a bare process."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from posixpath import join

from redstart.core.change import Snapshot
from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import HOST_NAME, Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox import seccomp
from redstart.ports.sandbox.cgroups import Cgroup, CgroupTree, GroupUsage, grouped, own_tree
from redstart.ports.sandbox.exchange import Exchange, exchange, given, placed, variables
from redstart.ports.sandbox.launch import LaunchEnd, Watch, launch, limited
from redstart.ports.sandbox.leftovers import passing, sweep_folders
from redstart.ports.sandbox.mounts import INWARD, OBJECTS, OUTWARD, TEMPORARY, USER, etc_files, mount_arguments
from redstart.ports.sandbox.port import SandboxLack, Workspaces
from redstart.ports.sandbox.prepare import bring_copies, make_git
from redstart.ports.sandbox.services import INSIDE, Relays, Slots, relayed
from redstart.ports.sandbox.stage import OUTWARD as STAGED_OUTWARD
from redstart.ports.sandbox.stage import WORKSPACE as STAGED_WORKSPACE
from redstart.ports.sandbox.stage import ProcessRights, StagedExecution, own_rights
from redstart.ports.sandbox.warm import zygote
from redstart.ports.sandbox.warm.zygote import WarmProcess, WarmSession
from redstart.ports.sandbox.watch import ExecutionWatch
from redstart.ports.sandbox.wires import BubblewrapPipes

PROGRAM = "/usr/bin/bwrap"
"""The system's own program comes first: Ubuntu allows user namespaces by the path of the program."""
OLDEST = (0, 5)
BOUNDED_TMPFS = (0, 7)
NESTING_OFF = (0, 8)
PROBE_SECONDS = 60.0
FOREVER = 1e9

COMPLAINTS = ("bwrap: ", "setpriv: ", "mount: ", "unshare: ")
"""How the error messages begin of the programs that set up the sandbox."""

INSTALL = "Install bubblewrap: `apt install bubblewrap`, or `dnf install bubblewrap`."
APPARMOR = (
    "AppArmor forbids user namespaces here. Give bubblewrap a profile that allows them (Ubuntu: `apt install "
    "apparmor-profiles`, then load its bwrap-userns-restrict), or, for the whole machine, "
    "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
)
NAMESPACES = (
    "User namespaces are disabled here. Allow them with `sysctl -w kernel.unprivileged_userns_clone=1` and "
    "`sysctl -w user.max_user_namespaces=15000`; in a container, start it so that namespaces can be made."
)


class Bubblewrap:
    """Runs each command in fresh namespaces on a copy of the snapshot. It shares the host's kernel.

    `lacks` lists the limits that this machine does not provide.
    """

    tier = "bwrap"

    def __init__(self, workspaces: Workspaces, scratch: Path) -> None:
        self._workspaces = workspaces
        self._scratch = scratch
        self._slots = Slots()
        self._swept = False

    @property
    def lacks(self) -> tuple[SandboxLack, ...]:
        """What the sandbox lacks on this machine."""
        return lacking(own_rights(), own_tree(), seccomp.program())

    async def run(self, execution: Execution) -> Completed:
        if not self._swept:
            sweep_folders(self._scratch)
            self._swept = True
        with (
            exchange(self._scratch, execution) as exchanged,
            self._workspaces.checkout(execution.snapshot) as workspace,
            BubblewrapPipes() as wires,
            _grouped(execution.limits) as group,
        ):
            environment = execution.environment
            bring_copies(environment, workspace)
            stage = StagedExecution(own_rights(), execution.limits, group.doors if group else ())
            async with relayed(environment.services, exchanged.folder / "services", self._slots) as relays:
                argv = arguments(execution, exchanged, workspace, wires, stage, relays)
                folders = () if stage.mounts else (workspace, exchanged.outward)
                watchman = ExecutionWatch(execution.limits, group=group, folders=folders)
                ended = await _launched(argv, execution.limits, wires, watchman.watch, stage)
            ended = _counted(ended, group, wires, watchman)
            started = wires.command_ended and (relays is None or relays.ready)
            killed = ended.stopped or ended.killed_for_memory  # the kernel may kill the whole group
            if not started and not killed:
                raise _broken(ended.returncode, ended.output, begun=wires.begun)
            if not wires.command_ended:
                ended = dataclasses.replace(ended, returncode=-signal.SIGKILL)
            return exchanged.completed(ended, wires.outward)

    @contextlib.asynccontextmanager
    async def session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[WarmSession]:
        """Open a session that forks each run of pytest from a sandboxed process that has already imported it."""
        session = WarmSession(self, self._kept, environment, limits)
        try:
            yield session
        finally:
            await session.close()

    @contextlib.asynccontextmanager
    async def _kept(self, execution: Execution) -> AsyncGenerator[WarmProcess]:
        """Start a process that runs like this one can be forked from.

        Raises `SandboxUnavailable` where a warm start is not possible.
        """
        if not own_rights().mounts or seccomp.program() is None:
            raise SandboxUnavailable("A warm start needs mounts and a system call filter.")
        limits = execution.limits
        more = limits.model_copy(update={"processes": limits.processes + zygote.OWN_PROCESSES, "wall": FOREVER})
        with (
            exchange(self._scratch, execution) as exchanged,
            self._workspaces.checkout(execution.snapshot) as names,
            BubblewrapPipes() as wires,
            _grouped(limits) as group,
            zygote.control_wire(wires.fds) as (control, number),
        ):
            bring_copies(execution.environment, names)
            zygote.make_unreadable(names)
            for name in ("runs", "stage"):
                (exchanged.folder / name).mkdir()
            stage = StagedExecution(own_rights(), limits, group.doors if group else ())
            about = zygote.about(execution, number, inward=INWARD, outward=OUTWARD, also=(OBJECTS,))
            command = (execution.environment.python, "-c", zygote.program(), about)
            asked = execution.model_copy(update={"argv": command, "limits": more})
            argv = arguments(asked, exchanged, names, wires, stage, kept=True)
            life = asyncio.create_task(_launched(argv, more, wires, _forever, stage))
            try:
                parent = zygote.Zygote(exchanged.folder / "runs", control)
                await parent.ready(life)
                zygote.let_go(wires.fds, number)
                yield _Forks(self._workspaces, parent, stage)
            finally:
                life.cancel()
                await asyncio.gather(life, return_exceptions=True)


class _Forks:
    """Runs each execution as a fork of one process."""

    def __init__(self, workspaces: Workspaces, parent: zygote.Zygote, stage: StagedExecution) -> None:
        self._workspaces, self._parent, self._stage = workspaces, parent, stage

    async def run(self, execution: Execution) -> Completed:
        environment = execution.environment
        with (
            exchange(self._parent.folder, execution) as exchanged,
            self._workspaces.checkout(execution.snapshot) as workspace,
            _grouped(execution.limits) as group,
        ):
            bring_copies(environment, workspace)
            if os.path.lexists(workspace / ".git"):
                raise SandboxUnavailable("A workspace with its own git folder cannot start warm.")
            make_git(environment, workspace / ".git", objects=OBJECTS)
            shutil.move(workspace, exchanged.folder / "work")
            zygote.write_request(execution, exchanged, inward=INWARD, outward=OUTWARD)
            self._stage.own(exchanged.folder)
            return await self._parent.run(execution, exchanged, group)


async def _forever(_: int) -> ExitCause:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


@contextlib.contextmanager
def _grouped(limits: SandboxLimits) -> Generator[Cgroup | None]:
    with contextlib.ExitStack() as held:
        try:
            group = held.enter_context(grouped(own_tree(), limits))
        except OSError as error:
            raise SandboxUnavailable(f"The kernel provides no control group for the sandbox: {error}") from error
        yield group


async def _launched(
    argv: list[str], limits: SandboxLimits, wires: BubblewrapPipes, then: Watch, stage: StagedExecution
) -> LaunchEnd:
    async def watch(pid: int) -> ExitCause:
        await wires.admit(pid, staged=stage.mounts)
        return await then(pid)

    def kill(pid: int) -> None:
        first = stage.first(pid)
        if first is None:
            wires.kill(pid)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)

    try:
        # Bubblewrap itself gets no variable of the request: the dynamic loader would obey some of them on the host.
        return await launch(argv, variables={}, limits=limits, pass_fds=wires.fds, kill=kill, watch=watch)
    except OSError as error:
        raise SandboxUnavailable(f"bubblewrap cannot be started: {error}", remedy=INSTALL) from error


def _counted(ended: LaunchEnd, group: Cgroup | None, wires: BubblewrapPipes, watchman: ExecutionWatch) -> LaunchEnd:
    """Return the end with what the kernel counted for all processes together."""
    used = group.usage() if group else GroupUsage()
    return dataclasses.replace(
        ended,
        cpu=max(ended.cpu, used.cpu),
        peak_memory=used.peak_memory or ended.peak_memory,
        killed_for_memory=used.killed_for_memory,
        refused_processes=used.refused_processes,
        stopped=ended.stopped or watchman.disk(),
        disk_full=wires.disk_full,
    )


def lacking(rights: ProcessRights, tree: CgroupTree | None, filtered: bytes | None) -> tuple[SandboxLack, ...]:
    """List what is missing."""
    found = {
        SandboxLack.memory_limit: tree is not None,
        SandboxLack.bounded_disk: rights.mounts,
        SandboxLack.own_user: rights.drops or os.geteuid() != 0,
        SandboxLack.call_filter: filtered is not None,
    }
    return tuple(lack for lack, had in found.items() if not had)


def arguments(
    execution: Execution,
    exchanged: Exchange,
    workspace: Path,
    wires: BubblewrapPipes,
    stage: StagedExecution,
    relays: Relays | None = None,
    *,
    kept: bool = False,
) -> list[str]:
    """Build the whole argument list. Raises `SandboxUnavailable` if there is no usable bubblewrap.

    With `warm` it is for a process that makes its own sandbox for each run.
    """
    program, version = find_bubblewrap()
    environment, limits, workspace = execution.environment, execution.limits, workspace.resolve()
    inward, outward, objects = _shared_folders(execution)
    etc = etc_files(environment.home, execution.hostname)
    asked = {name: placed(value, inward, outward) for name, value in given(execution).items()}
    inside = variables(environment.python, asked, home=environment.home, temporary=TEMPORARY)
    argv = [placed(argument, inward, outward) for argument in execution.argv]
    history = _history(environment, exchanged, workspace, objects)
    stage.own(workspace, exchanged.folder)
    filtered = zygote.call_filter() if kept else seccomp.program()
    runs = {zygote.RUNS: (exchanged.folder / "runs", False), zygote.STAGE: (exchanged.folder / "stage", False)}
    command = [
        stage.source(program),
        *_bounds(version, zygote.CAPABILITIES if kept else (), execution.hostname or HOST_NAME),
        *("--json-status-fd", str(wires.status), "--block-fd", str(wires.gate)),
        *(("--seccomp", str(wires.feed(filtered))) if filtered else ()),
        "--clearenv",
        *(argument for name, value in inside.items() for argument in ("--setenv", name, value)),
        *mount_arguments(
            environment,
            limits,
            workspace=Path(STAGED_WORKSPACE) if stage.mounts else workspace,
            folders={
                inward: (exchanged.inward, False),
                outward: (Path(STAGED_OUTWARD) if stage.mounts else exchanged.outward, True),
                **history,
                **({INSIDE: (relays.folder, False)} if relays else {}),
                **(runs if kept else {}),
            },
            etc={name: wires.feed(text.encode()) for name, text in etc.items()},
            sized=version >= BOUNDED_TMPFS,
            temporary=stage.temporary(environment.home),
            source=stage.source,
        ),
        *("--chdir", "/", "--"),
        *limited(
            limits,
            "/" if kept else join(environment.mount, execution.cwd),
            argv,
            stay=True,
            before=relays.command(environment.python) if relays else (),
            counted=True,
        ),
    ]
    return stage.argv(command, workspace)


def _bounds(version: tuple[int, ...], capabilities: Sequence[str], hostname: str) -> list[str]:
    """Build the arguments that isolate the command, except for the mounts and the filter."""
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--uid", str(USER), "--gid", str(USER), "--hostname", hostname),
        *(("--disable-userns",) if version >= NESTING_OFF else ()),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"),
        *(word for name in capabilities for word in ("--cap-add", name)),
    ]


def _shared_folders(execution: Execution) -> tuple[str, str, str]:
    """Return where files go in and out, and git's objects.

    On a host of another name, none of them is at its usual path.
    """
    if not execution.hostname:
        return INWARD, OUTWARD, OBJECTS
    place = f"/run/{execution.hostname}"
    return f"{place}/in", f"{place}/out", f"{place}/objects"


def _history(
    environment: Environment, exchanged: Exchange, workspace: Path, objects: str
) -> dict[str, tuple[Path, bool]]:
    """List what to mount for git: the real objects, and a writable git folder of the sandbox's own."""
    beside = os.path.lexists(workspace / ".git")  # the snapshot has a .git of its own; the mount covers it
    folder = exchanged.folder / "git" if beside else workspace / ".git"
    if not make_git(environment, folder, objects=objects):
        return {}
    mounted = {objects: (Path(environment.git_objects), False)}
    return mounted | ({join(environment.mount, ".git"): (folder, True)} if beside else {})


@functools.cache
def find_bubblewrap() -> tuple[str, tuple[int, ...]]:
    """Return the program and its version. Raises `SandboxUnavailable` if it is missing, broken or too old."""
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
    """Run `/bin/true` with every flag that an execution gets. Raises `SandboxUnavailable`, with the remedy."""
    with passing("probe") as folder:
        snapshot = Snapshot(tree="", base="", pack="")
        environment = Environment(mount=str(folder), python="/usr/bin/python3")
        execution = Execution(argv=("/bin/true",), snapshot=snapshot, environment=environment)
        with exchange(scratch, execution) as exchanged, BubblewrapPipes() as wires, _grouped(execution.limits) as group:
            stage = StagedExecution(own_rights(), execution.limits, group.doors if group else ())
            argv = arguments(execution, exchanged, folder, wires, stage)
            wires.open_gate()
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
                raise _broken(ran.returncode, ran.stdout, begun=False)


def _broken(returncode: int, output: bytes, *, begun: bool) -> SandboxUnavailable:
    words = output.decode("utf-8", "replace").strip()[-500:] or f"it ended with {returncode}"
    if begun and not any(each in words for each in COMPLAINTS):
        return SandboxDied(f"The sandbox died while a command ran in it: {words}")
    return SandboxUnavailable(f"The sandbox could not be started or died: {words}", remedy=remedy_for(words))


def remedy_for(words: str, *, restricted: Path = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) -> str:
    """Return the remedy for an error message of bubblewrap; empty for an unknown message."""
    denied = ("uid map", "namespace", "RTM_NEWADDR", "Operation not permitted", "Permission denied")
    if not any(each in words for each in denied):
        return ""
    with contextlib.suppress(OSError):
        if restricted.read_text().strip() == "1":
            return APPARMOR
    return NAMESPACES
