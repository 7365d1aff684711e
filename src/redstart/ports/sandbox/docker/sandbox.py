"""The sandbox of Docker or Podman: a container for each execution, or one for many in the inner loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.docker.container import ContainerRun, NotReady, RunningContainer, start_container
from redstart.ports.sandbox.docker.daemon import DaemonApi, DaemonRefused, as_list
from redstart.ports.sandbox.docker.inside import build_command, keep
from redstart.ports.sandbox.docker.spec import (
    GVISOR,
    LABEL,
    OBJECTS,
    OWNER_LABEL,
    ContainerFolders,
    PathMap,
    User,
    WorkspaceSize,
    describe_container,
    get_container_user,
    list_inner_mounts,
)
from redstart.ports.sandbox.files import Exchange, exchange
from redstart.ports.sandbox.leftovers import FOLDER, mark, sweep_folders
from redstart.ports.sandbox.mounts import normalize_path
from redstart.ports.sandbox.port import Sandbox, Workspaces
from redstart.ports.sandbox.services import Slots, open_relays
from redstart.ports.sandbox.stage import get_writable_size
from redstart.ports.sandbox.workspace import bring_copies, make_git

PAGE = 4096
SPARE = WorkspaceSize(16 * PAGE, 16)
"""For the workspace itself, and the folders above what is mounted in it."""


def furnish(environment: Environment, workspace: Path) -> None:
    """Add what the environment asks for to the snapshot's files, and remove what a mount will cover."""
    bring_copies(environment, workspace)
    make_git(environment, workspace / ".git", objects=OBJECTS)
    for relative in list_inner_mounts(environment):
        folders = [workspace.joinpath(*relative.parts[:count]) for count in range(1, len(relative.parts) + 1)]
        for folder in folders[:-1]:
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
        if os.path.lexists(folders[-1]):
            remove(folders[-1])


def measure_workspace(folder: Path) -> WorkspaceSize:
    """Measure how much memory the files below a folder need in a file system in memory. No link is followed."""
    size, files = SPARE
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                size += -(-entry.stat(follow_symlinks=False).st_size // PAGE) * PAGE
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return WorkspaceSize(size, files)


def give(folder: Path, user: User) -> None:
    """Make the user the owner of the folder and all in it, if we are root; otherwise the user owns it already."""
    if os.geteuid() != 0:
        return
    os.lchown(folder, user.uid, user.gid)
    for root, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        del root
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=descriptor, follow_symlinks=False)


def move_into(source: Path, target: Path) -> None:
    """Move everything from one folder into another one, which is emptied first."""
    for old in target.iterdir():
        remove(old)
    for entry in source.iterdir():
        try:
            entry.rename(target / entry.name)
        except OSError:  # another file system
            shutil.move(entry, target / entry.name)


def remove(path: Path) -> None:
    """Remove everything that was left there, including what its owner made inaccessible."""
    if path.is_dir() and not path.is_symlink():
        with contextlib.suppress(OSError):
            path.chmod(0o700)
        for entry in path.iterdir():
            remove(entry)
        path.rmdir()
    else:
        path.unlink()


PROC = Path("/proc")


class LeftoverRemover:
    """Removes leftovers once, before the first container is made."""

    def __init__(self, api: DaemonApi) -> None:
        self._api = api
        self._is_done = False
        self.owner = identify_process(os.getpid())

    async def remove_once(self) -> None:
        if not self._is_done:
            self._is_done = True
            await reap(self._api)


async def reap(api: DaemonApi) -> int:
    """Remove each container whose owner was a process of this machine and is dead. Returns how many."""
    filters = json.dumps({"label": [f"{LABEL}=1"]})
    try:
        containers = await api.call("GET", "/containers/json", query={"all": "1", "filters": filters})
    except DaemonRefused:
        return 0
    count = 0
    for container in as_list(containers):
        labels: dict[str, str] = container["Labels"] or {}
        if is_dead(labels.get(OWNER_LABEL, "")):
            with contextlib.suppress(DaemonRefused):
                await api.call("DELETE", f"/containers/{container['Id']}", query={"force": "1", "v": "1"})
                count += 1
    return count


def identify_process(pid: int) -> str:
    """Identify a process uniquely: by the machine's boot, its namespace, its process ID and its start time."""
    return "/".join((_read_boot_id(), _read_namespace(), str(pid), _start(pid)))


def is_dead(owner: str) -> bool:
    """Whether that process is certainly gone. A process of another container cannot be seen, so it counts as alive."""
    parts = owner.split("/")
    if len(parts) != 4 or not parts[2].isdigit() or not _read_boot_id():
        return False
    if parts[0] != _read_boot_id():
        return True
    return parts[1] == _read_namespace() and _start(int(parts[2])) != parts[3]


def _read_boot_id() -> str:
    with contextlib.suppress(OSError):
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""


def _read_namespace() -> str:
    with contextlib.suppress(OSError):
        return (PROC / "self/ns/pid").readlink().name
    return ""


def _start(pid: int) -> str:
    """Return when a process was started, in ticks since the boot; empty if there is no such process."""
    with contextlib.suppress(OSError, IndexError):
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    return ""


PART = 8
"""A later snapshot may be larger than the first by this part of the writable size."""

Boxes = Callable[
    [Environment, SandboxLimits, ContainerFolders, WorkspaceSize], AbstractAsyncContextManager[RunningContainer]
]


class WarmContainer:
    """One container for many executions, with fresh files and empty temporary folders, but not a fresh kernel.

    If an execution leaves a process behind or reaches a limit, the next one gets a new container. Executions run one
    after another. An execution of another environment or other limits is run by `fresh`.
    """

    def __init__(
        self,
        fresh_sandbox: Sandbox,
        workspaces: Workspaces,
        scratch: Path,
        user: User,
        boxes: Boxes,
        settings: tuple[Environment, SandboxLimits],
    ) -> None:
        self._fresh_sandbox = fresh_sandbox
        self._workspaces = workspaces
        self._scratch = scratch
        self._user = user
        self._boxes = boxes
        self._environment, self._limits = _without_snapshot_parts(settings[0]), settings[1]
        self._turn = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._container: RunningContainer | None = None
        self._workspace_size = WorkspaceSize()
        self._folder = Path()
        self.containers = 0
        """How many containers were needed so far."""

    async def run(self, execution: Execution) -> Completed:
        environment = execution.environment
        is_same = (_without_snapshot_parts(environment), execution.limits) == (self._environment, self._limits)
        if environment.services or execution.hostname or not is_same:
            return await self._fresh_sandbox.run(execution)
        async with self._turn:
            with exchange(self._scratch, execution) as file_exchange:
                container_run = await self._run_warm(execution, file_exchange)
                if container_run is not None:
                    keep(container_run.files, execution.collect, file_exchange.output_folder)
                    return file_exchange.build_completed(container_run.launch_end)
        return await self._fresh_sandbox.run(execution)

    async def close(self) -> None:
        """Remove the container and its folders."""
        self._container = None
        await self._open.aclose()

    async def _run_warm(self, execution: Execution, file_exchange: Exchange) -> ContainerRun | None:
        """Run the execution in the warm container; None if the container broke."""
        with self._workspaces.checkout(execution.snapshot) as workspace:
            furnish(execution.environment, workspace)
            container = await self._get_container(execution.environment, workspace)
            move_into(workspace, self._folder / "workspace")
            move_into(file_exchange.input_folder, self._folder / "in")
            give(self._folder / "workspace", self._user)
        try:
            container_run = await container.run(
                build_command(execution, self._user, is_reused=True, own_kernel=container.own_kernel)
            )
        except (SandboxDied, NotReady):
            await self.close()
            return None
        except BaseException:
            await self.close()
            raise
        if not container_run.is_clean:
            await self.close()
        return container_run

    async def _get_container(self, environment: Environment, workspace: Path) -> RunningContainer:
        workspace_size = measure_workspace(workspace)
        if self._container is None or not self._has_room(workspace_size):
            await self.close()
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._open = contextlib.AsyncExitStack()
            folder = tempfile.TemporaryDirectory(
                prefix=f"{FOLDER}{mark()}-session-", dir=self._scratch, ignore_cleanup_errors=True
            )
            self._folder = Path(self._open.enter_context(folder)).resolve()
            place = ContainerFolders(self._folder / "workspace", self._folder / "in", self._folder / "etc")
            place.workspace.mkdir()
            place.input_folder.mkdir()
            try:
                container = await self._open.enter_async_context(
                    self._boxes(environment, self._limits, place, workspace_size)
                )
            except BaseException:
                await self._open.aclose()
                raise
            self._container, self._workspace_size = container, workspace_size
            self.containers += 1
        return self._container

    def _has_room(self, workspace_size: WorkspaceSize) -> bool:
        more_size, more_files = (
            workspace_size.size - self._workspace_size.size,
            workspace_size.files - self._workspace_size.files,
        )
        return more_size <= get_writable_size(self._limits) // PART and more_files <= self._limits.inodes // PART


def _without_snapshot_parts(environment: Environment) -> Environment:
    """Return the environment without the parts that come with each snapshot."""
    excluded = ("variables", "copies", "left_out", "chosen", "git_refs", "git_head", "git_shallow")
    return Environment.model_validate(environment.model_dump(exclude=set(excluded)))


ROOT = "0"


class ContainerOptions(NamedTuple):
    """Which containers to use. `socket` is the daemon's; `image` is one that the daemon has."""

    socket: str
    image: str
    runtime: str = ""
    """Empty for the daemon's default; `runsc` for gVisor."""
    path_map: PathMap = ()


class Docker:
    """Runs each command in a container of its own. It shares the host's kernel, except with the runtime `runsc`.

    The workspace is copied into memory, where its size and number of files are bounded for any daemon.
    """

    def __init__(self, workspaces: Workspaces, scratch: Path, choices: ContainerOptions) -> None:
        self._workspaces = workspaces
        self._scratch = scratch
        self._choices = choices
        self._api = DaemonApi(choices.socket)
        self._reaper = LeftoverRemover(self._api)
        self._slots = Slots()
        self._has_removed_leftovers = False
        self._user = get_container_user()
        self.tier = f"docker+{choices.runtime}" if choices.runtime else "docker"

    async def run(self, execution: Execution) -> Completed:
        self._sweep()
        environment, limits = execution.environment, execution.limits
        with (
            exchange(self._scratch, execution) as file_exchange,
            self._workspaces.checkout(execution.snapshot) as workspace,
        ):
            furnish(environment, workspace)
            async with open_relays(environment.services, file_exchange.folder / "services", self._slots) as relays:
                place = ContainerFolders(workspace.resolve(), file_exchange.input_folder, file_exchange.folder / "etc")
                if relays:
                    place = place._replace(services=relays.folder)
                if execution.hostname:
                    place = place._replace(hostname=execution.hostname)
                for folder in filter(None, (place.workspace, place.services)):
                    give(folder, self._user)
                setup_command = relays.build_command(environment.python) if relays else ()
                async with self._open_container(environment, limits, place, measure_workspace(workspace)) as container:
                    container_run = await container.run(
                        build_command(
                            execution, self._user, setup_command=setup_command, own_kernel=container.own_kernel
                        )
                    )
            if relays and not relays.ready and not container_run.launch_end.stop_cause:
                raise SandboxUnavailable("The services could not be made available in the container.")
            keep(container_run.files, execution.collect, file_exchange.output_folder)
            return file_exchange.build_completed(container_run.launch_end)

    @contextlib.asynccontextmanager
    async def open_session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[WarmContainer]:
        """Open a session whose executions share a container as long as nothing is left in it."""
        self._sweep()
        warm = WarmContainer(
            self, self._workspaces, self._scratch, self._user, self._open_container, (environment, limits)
        )
        try:
            yield warm
        finally:
            await warm.close()

    def _sweep(self) -> None:
        if not self._has_removed_leftovers:
            self._has_removed_leftovers = True
            sweep_folders(self._scratch)

    @contextlib.asynccontextmanager
    async def _open_container(
        self, environment: Environment, limits: SandboxLimits, place: ContainerFolders, workspace_size: WorkspaceSize
    ) -> AsyncGenerator[RunningContainer]:
        """Open a container that sees these folders. Raises `SandboxUnavailable`."""
        await self._reaper.remove_once()
        choices = self._choices
        description = describe_container(
            environment,
            limits,
            place,
            image=choices.image,
            runtime=choices.runtime,
            user=self._user,
            workspace_size=workspace_size,
            path_map=choices.path_map,
            owner=self._reaper.owner,
        )
        async with start_container(self._api, description, own_kernel=choices.runtime == GVISOR) as container:
            await _open(container, environment)
            yield container


async def _open(container: RunningContainer, environment: Environment) -> None:
    """Let the user write to folders of the workspace that contain a mount, because the daemon creates them for root.

    Root in a container has no rights except over root's own files.
    """
    mount = normalize_path(environment.mount)
    folders = sorted(
        {f"{mount}/{folder}" for path in list_inner_mounts(environment) for folder in list(path.parents)[:-1]}
    )
    if not folders:
        return
    try:
        code = await container.run_short_command(("/bin/chmod", "0777", *folders), user=ROOT)
    except (DaemonRefused, TimeoutError) as error:
        raise SandboxUnavailable(f"The workspace could not be opened in the container: {error}") from error
    if code != 0:
        raise SandboxUnavailable(f"The workspace could not be opened in the container: chmod exited with {code}")
