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
from redstart.ports.sandbox.cgroups import Cgroup, CgroupTree, GroupUsage, find_own_tree, open_group
from redstart.ports.sandbox.files import Exchange, build_variables, exchange, fill_placeholders, get_requested_variables
from redstart.ports.sandbox.launch import LaunchEnd, Watch, build_limited_command, launch
from redstart.ports.sandbox.leftovers import open_temporary_folder, sweep_folders
from redstart.ports.sandbox.mounts import (
    INPUT_FOLDER,
    OBJECTS,
    OUTPUT_FOLDER,
    TEMPORARY,
    USER,
    generate_etc_files,
    mount_arguments,
)
from redstart.ports.sandbox.pipes import BubblewrapPipes
from redstart.ports.sandbox.port import SandboxLack, Workspaces
from redstart.ports.sandbox.services import INSIDE, Relays, Slots, open_relays
from redstart.ports.sandbox.stage import OUTWARD as STAGED_OUTWARD
from redstart.ports.sandbox.stage import WORKSPACE as STAGED_WORKSPACE
from redstart.ports.sandbox.stage import ProcessRights, StagedExecution, get_own_rights
from redstart.ports.sandbox.usage_monitor import ExecutionWatch
from redstart.ports.sandbox.warm import zygote
from redstart.ports.sandbox.warm.zygote import WarmProcess, WarmSession
from redstart.ports.sandbox.workspace import bring_copies, make_git

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
        self._has_removed_leftovers = False

    @property
    def lacks(self) -> tuple[SandboxLack, ...]:
        """What the sandbox lacks on this machine."""
        return list_missing_features(get_own_rights(), find_own_tree(), seccomp.build_filter())

    async def run(self, execution: Execution) -> Completed:
        if not self._has_removed_leftovers:
            sweep_folders(self._scratch)
            self._has_removed_leftovers = True
        with (
            exchange(self._scratch, execution) as file_exchange,
            self._workspaces.checkout(execution.snapshot) as workspace,
            BubblewrapPipes() as wires,
            _open_group(execution.limits) as group,
        ):
            environment = execution.environment
            bring_copies(environment, workspace)
            stage = StagedExecution(get_own_rights(), execution.limits, group.procs_files if group else ())
            async with open_relays(environment.services, file_exchange.folder / "services", self._slots) as relays:
                argv = build_arguments(execution, file_exchange, workspace, wires, stage, relays)
                folders = () if stage.mounts else (workspace, file_exchange.output_folder)
                monitor = ExecutionWatch(execution.limits, group=group, folders=folders)
                end = await _launch(argv, execution.limits, wires, monitor.watch, stage)
            end = _add_group_usage(end, group, wires, monitor)
            is_started = wires.command_ended and (relays is None or relays.ready)
            killed = end.stop_cause or end.killed_for_memory  # the kernel may kill the whole group
            if not is_started and not killed:
                raise _make_start_error(end.returncode, end.output, has_begun=wires.has_begun)
            if not wires.command_ended:
                end = dataclasses.replace(end, returncode=-signal.SIGKILL)
            return file_exchange.build_completed(end, wires.output_fd)

    @contextlib.asynccontextmanager
    async def open_session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[WarmSession]:
        """Open a session that forks each run of pytest from a sandboxed process that has already imported it."""
        session = WarmSession(self, self._open_warm_process, environment, limits)
        try:
            yield session
        finally:
            await session.close()

    @contextlib.asynccontextmanager
    async def _open_warm_process(self, execution: Execution) -> AsyncGenerator[WarmProcess]:
        """Start a process from which runs like this one can be forked.

        Raises `SandboxUnavailable` if a warm start is not possible.
        """
        if not get_own_rights().mounts or seccomp.build_filter() is None:
            raise SandboxUnavailable("A warm start needs mounts and a system call filter.")
        limits = execution.limits
        warm_limits = limits.model_copy(update={"processes": limits.processes + zygote.OWN_PROCESSES, "wall": FOREVER})
        with (
            exchange(self._scratch, execution) as file_exchange,
            self._workspaces.checkout(execution.snapshot) as names,
            BubblewrapPipes() as wires,
            _open_group(limits) as group,
            zygote.control_wire(wires.fds) as (control, number),
        ):
            bring_copies(execution.environment, names)
            zygote.make_unreadable(names)
            for name in ("runs", "stage"):
                (file_exchange.folder / name).mkdir()
            stage = StagedExecution(get_own_rights(), limits, group.procs_files if group else ())
            settings = zygote.build_settings(
                execution, number, inward=INPUT_FOLDER, outward=OUTPUT_FOLDER, extra_paths=(OBJECTS,)
            )
            command = (execution.environment.python, "-c", zygote.read_program(), settings)
            request = execution.model_copy(update={"argv": command, "limits": warm_limits})
            argv = build_arguments(request, file_exchange, names, wires, stage, warm=True)
            life = asyncio.create_task(_launch(argv, warm_limits, wires, _wait_forever, stage))
            try:
                parent = zygote.Zygote(file_exchange.folder / "runs", control)
                await parent.wait_until_ready(life)
                zygote.close_passed_fd(wires.fds, number)
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
            exchange(self._parent.folder, execution) as file_exchange,
            self._workspaces.checkout(execution.snapshot) as workspace,
            _open_group(execution.limits) as group,
        ):
            bring_copies(environment, workspace)
            if os.path.lexists(workspace / ".git"):
                raise SandboxUnavailable("A workspace with its own git folder cannot start warm.")
            make_git(environment, workspace / ".git", objects=OBJECTS)
            shutil.move(workspace, file_exchange.folder / "work")
            zygote.write_request(execution, file_exchange, inward=INPUT_FOLDER, outward=OUTPUT_FOLDER)
            self._stage.take_ownership(file_exchange.folder)
            return await self._parent.run(execution, file_exchange, group)


async def _wait_forever(_: int) -> ExitCause:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


@contextlib.contextmanager
def _open_group(limits: SandboxLimits) -> Generator[Cgroup | None]:
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(open_group(find_own_tree(), limits))
        except OSError as error:
            raise SandboxUnavailable(f"The kernel provides no control group for the sandbox: {error}") from error
        yield group


async def _launch(
    argv: list[str], limits: SandboxLimits, wires: BubblewrapPipes, next_watch: Watch, stage: StagedExecution
) -> LaunchEnd:
    async def watch(pid: int) -> ExitCause:
        await wires.admit(pid, staged=stage.mounts)
        return await next_watch(pid)

    def kill(pid: int) -> None:
        first_pid = stage.find_first_process(pid)
        if first_pid is None:
            wires.kill(pid)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first_pid, signal.SIGKILL)

    try:
        # Bubblewrap itself gets no variable of the request: the dynamic loader would obey some of them on the host.
        return await launch(argv, variables={}, limits=limits, pass_fds=wires.fds, kill=kill, watch=watch)
    except OSError as error:
        raise SandboxUnavailable(f"bubblewrap cannot be started: {error}", remedy=INSTALL) from error


def _add_group_usage(
    end: LaunchEnd, group: Cgroup | None, wires: BubblewrapPipes, monitor: ExecutionWatch
) -> LaunchEnd:
    """Add what the kernel counted for all processes together to the result of the command."""
    used = group.get_usage() if group else GroupUsage()
    return dataclasses.replace(
        end,
        cpu=max(end.cpu, used.cpu),
        peak_memory=used.peak_memory or end.peak_memory,
        killed_for_memory=used.killed_for_memory,
        refused_processes=used.refused_processes,
        stop_cause=end.stop_cause or monitor.check_disk(),
        disk_full=wires.disk_full,
    )


def list_missing_features(
    rights: ProcessRights, tree: CgroupTree | None, call_filter: bytes | None
) -> tuple[SandboxLack, ...]:
    """List what is missing."""
    available = {
        SandboxLack.memory_limit: tree is not None,
        SandboxLack.bounded_disk: rights.mounts,
        SandboxLack.own_user: rights.drops or os.geteuid() != 0,
        SandboxLack.call_filter: call_filter is not None,
    }
    return tuple(lack for lack, had in available.items() if not had)


def build_arguments(
    execution: Execution,
    file_exchange: Exchange,
    workspace: Path,
    wires: BubblewrapPipes,
    stage: StagedExecution,
    relays: Relays | None = None,
    *,
    warm: bool = False,
) -> list[str]:
    """Build the whole argument list. Raises `SandboxUnavailable` if there is no usable bubblewrap.

    With `warm`, the arguments are for a process that makes its own sandbox for each run.
    """
    program, version = find_bubblewrap()
    environment, limits, workspace = execution.environment, execution.limits, workspace.resolve()
    inward, outward, objects = _get_shared_folders(execution)
    etc = generate_etc_files(environment.home, execution.hostname)
    requested = {
        name: fill_placeholders(value, inward, outward) for name, value in get_requested_variables(execution).items()
    }
    inside = build_variables(environment.python, requested, home=environment.home, temporary=TEMPORARY)
    argv = [fill_placeholders(argument, inward, outward) for argument in execution.argv]
    history = _list_git_mounts(environment, file_exchange, workspace, objects)
    stage.take_ownership(workspace, file_exchange.folder)
    call_filter = zygote.call_filter() if warm else seccomp.build_filter()
    runs = {zygote.RUNS: (file_exchange.folder / "runs", False), zygote.STAGE: (file_exchange.folder / "stage", False)}
    command = [
        stage.get_source(program),
        *_build_isolation_arguments(version, zygote.CAPABILITIES if warm else (), execution.hostname or HOST_NAME),
        *("--json-status-fd", str(wires.status), "--block-fd", str(wires.gate)),
        *(("--seccomp", str(wires.feed(call_filter))) if call_filter else ()),
        "--clearenv",
        *(argument for name, value in inside.items() for argument in ("--setenv", name, value)),
        *mount_arguments(
            environment,
            limits,
            workspace=Path(STAGED_WORKSPACE) if stage.mounts else workspace,
            folders={
                inward: (file_exchange.input_folder, False),
                outward: (Path(STAGED_OUTWARD) if stage.mounts else file_exchange.output_folder, True),
                **history,
                **({INSIDE: (relays.folder, False)} if relays else {}),
                **(runs if warm else {}),
            },
            etc={name: wires.feed(text.encode()) for name, text in etc.items()},
            bounded_tmpfs=version >= BOUNDED_TMPFS,
            temporary=stage.get_temporary_folders(environment.home),
            source=stage.get_source,
        ),
        *("--chdir", "/", "--"),
        *build_limited_command(
            limits,
            "/" if warm else join(environment.mount, execution.cwd),
            argv,
            keep_shell=True,
            setup_command=relays.build_command(environment.python) if relays else (),
            count_processes=True,
        ),
    ]
    return stage.build_argv(command, workspace)


def _build_isolation_arguments(version: tuple[int, ...], capabilities: Sequence[str], hostname: str) -> list[str]:
    """Build the arguments that isolate the command, except for the mounts and the filter."""
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--uid", str(USER), "--gid", str(USER), "--hostname", hostname),
        *(("--disable-userns",) if version >= NESTING_OFF else ()),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"),
        *(word for name in capabilities for word in ("--cap-add", name)),
    ]


def _get_shared_folders(execution: Execution) -> tuple[str, str, str]:
    """Return the folders for incoming files, for results and for git's objects.

    With another host name than usual, none of them is at its usual path.
    """
    if not execution.hostname:
        return INPUT_FOLDER, OUTPUT_FOLDER, OBJECTS
    place = f"/run/{execution.hostname}"
    return f"{place}/in", f"{place}/out", f"{place}/objects"


def _list_git_mounts(
    environment: Environment, file_exchange: Exchange, workspace: Path, objects: str
) -> dict[str, tuple[Path, bool]]:
    """List what to mount for git: the real objects, and a writable git folder of the sandbox's own."""
    has_own_git = os.path.lexists(workspace / ".git")  # the snapshot has a .git of its own; the mount covers it
    folder = file_exchange.folder / "git" if has_own_git else workspace / ".git"
    if not make_git(environment, folder, objects=objects):
        return {}
    mounts = {objects: (Path(environment.git_objects), False)}
    return mounts | ({join(environment.mount, ".git"): (folder, True)} if has_own_git else {})


@functools.cache
def find_bubblewrap() -> tuple[str, tuple[int, ...]]:
    """Return the program and its version. Raises `SandboxUnavailable` if it is missing, broken or too old."""
    program = PROGRAM if os.access(PROGRAM, os.X_OK) else shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable("bubblewrap (`bwrap`) is not installed.", remedy=INSTALL)
    try:
        completed = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxUnavailable(f"bubblewrap cannot be started: {error}", remedy=INSTALL) from error
    version = tuple(int(number) for number in re.findall(r"\d+", completed.stdout)[:3])
    if version < OLDEST:
        raise SandboxUnavailable(f"{completed.stdout.strip()} is too old; 0.5 or newer is needed.", remedy=INSTALL)
    return program, version


def probe(scratch: Path) -> None:
    """Run `/bin/true` with every flag that an execution gets. Raises `SandboxUnavailable`, with the remedy."""
    with open_temporary_folder("probe") as folder:
        snapshot = Snapshot(tree="", base="", pack="")
        environment = Environment(mount=str(folder), python="/usr/bin/python3")
        execution = Execution(argv=("/bin/true",), snapshot=snapshot, environment=environment)
        with (
            exchange(scratch, execution) as file_exchange,
            BubblewrapPipes() as wires,
            _open_group(execution.limits) as group,
        ):
            stage = StagedExecution(get_own_rights(), execution.limits, group.procs_files if group else ())
            argv = build_arguments(execution, file_exchange, folder, wires, stage)
            wires.open_gate()
            try:
                completed = subprocess.run(
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
            if completed.returncode != 0:
                raise _make_start_error(completed.returncode, completed.stdout, has_begun=False)


def _make_start_error(returncode: int, output: bytes, *, has_begun: bool) -> SandboxUnavailable:
    message = output.decode("utf-8", "replace").strip()[-500:] or f"it ended with {returncode}"
    if has_begun and not any(complaint in message for complaint in COMPLAINTS):
        return SandboxDied(f"The sandbox died while a command ran in it: {message}")
    return SandboxUnavailable(f"The sandbox could not be started or died: {message}", remedy=find_remedy(message))


def find_remedy(
    message: str, *, restriction_file: Path = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
) -> str:
    """Return the remedy for an error message of bubblewrap; empty for an unknown message."""
    patterns = ("uid map", "namespace", "RTM_NEWADDR", "Operation not permitted", "Permission denied")
    if not any(pattern in message for pattern in patterns):
        return ""
    with contextlib.suppress(OSError):
        if restriction_file.read_text().strip() == "1":
            return APPARMOR
    return NAMESPACES
