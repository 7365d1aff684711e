"""Control groups of the kernel (cgroups), which limit what all processes of one execution use together.

If this process may not create groups, as for most users without systemd, limits apply to each process alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox.leftovers import is_abandoned, mark

PREFIX = "redstart-"
SHARED_FOLDER = "redstart"
"""A folder at the top of a hierarchy, in which an administrator may let others make groups."""
SUPERVISOR = "redstart-supervisor"
NEEDED, USEFUL = ("memory", "pids"), ("cpu", "cpuacct")
PERIOD = 100_000
MEMORY_MARGIN_DIVISOR = 16
"""The group's memory limit is higher by this part of it. A single process that asks for too much is then refused by its
own limit, which it can handle, before the kernel has to kill a process."""
OWN_PROCESSES = 2
"""Processes of the sandbox itself in the same group."""
USERS = Path("/run/user")
RESTARTED = "SCOPE_OF_REDSTART"
"""The variable that holds the ID of the restarted process; the ID stays the same."""
DELEGATION_SCRIPT = """
own=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
test -w "$own/cgroup.procs" && cat "$own/cgroup.controllers"
"""
"""Prints what a process can bound below its own group; fails where it may make no group there."""
BURIAL_SECONDS = 5.0
TRY_SECONDS = 10.0

_numbers = itertools.count()


class GroupUsage(NamedTuple):
    """What a group has used so far, and what the kernel has refused it."""

    cpu: float = 0.0
    peak_memory: int = 0
    killed_for_memory: int = 0
    refused_processes: int = 0


class CgroupTree(NamedTuple):
    """Where groups can be created: one folder per controller in version 1, or one folder for all in version 2."""

    folders: Mapping[str, Path]
    unified: bool


class Cgroup:
    """The group of one execution, in each of the tree's folders. Raises `OSError` if it cannot be created."""

    def __init__(self, tree: CgroupTree, limits: SandboxLimits) -> None:
        self._unified = tree.unified
        name = f"{PREFIX}{mark()}-{next(_numbers)}"
        self._folders = {controller: folder / name for controller, folder in tree.folders.items()}
        try:
            for folder in self.folders:
                folder.mkdir()
            for controller, file, text in _list_settings(limits, self._folders, unified=tree.unified):
                path = self._folders[controller] / file
                if path.exists():  # some kernels have no swap to bound
                    path.write_text(text)
        except BaseException:
            self.close()
            raise

    @property
    def folders(self) -> list[Path]:
        return list(dict.fromkeys(self._folders.values()))

    @property
    def procs_files(self) -> list[str]:
        """The files to which a process writes `0` to join the group."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def get_cpu_seconds(self) -> float:
        """Return the processor time, in seconds, of all processes that were ever in the group."""
        if self._unified:
            return number_after(self._folders["memory"] / "cpu.stat", "usage_usec") / 1e6
        account = self._folders.get("cpuacct")
        return number_in(account / "cpuacct.usage") / 1e9 if account else 0.0

    def get_usage(self) -> GroupUsage:
        memory, pids = self._folders["memory"], self._folders["pids"]
        refused = number_after(pids / "pids.events", "max")
        if self._unified:
            killed = number_after(memory / "memory.events", "oom_kill")
            return GroupUsage(self.get_cpu_seconds(), number_in(memory / "memory.peak"), killed, refused)
        killed = number_after(memory / "memory.oom_control", "oom_kill")
        return GroupUsage(self.get_cpu_seconds(), number_in(memory / "memory.max_usage_in_bytes"), killed, refused)

    def kill(self) -> None:
        """Kill every process that is still in the group."""
        with contextlib.suppress(OSError):
            if self._unified and (self.folders[0] / "cgroup.kill").exists():
                (self.folders[0] / "cgroup.kill").write_text("1")
                return
        for folder in self.folders:
            _kill_members(folder)

    def close(self) -> None:
        """Kill what is left and remove the group. If that fails, `remove_abandoned_groups` removes it later."""
        deadline = time.monotonic() + BURIAL_SECONDS
        while not all(_remove_group(folder) for folder in self.folders) and time.monotonic() < deadline:
            self.kill()
            time.sleep(0.001)


@contextlib.contextmanager
def open_group(tree: CgroupTree | None, limits: SandboxLimits) -> Generator[Cgroup | None]:
    """Open a group for one execution; None if there is no tree of groups. Raises `OSError` if the group cannot be
    created.
    """
    if tree is None:
        yield None
        return
    group = Cgroup(tree, limits)
    try:
        yield group
    finally:
        group.close()


@functools.cache
def find_own_tree() -> CgroupTree | None:
    """Return where this process can create groups; the check runs once. Groups of dead processes are removed."""
    for tree in list_candidates(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()):
        if _is_usable(tree):
            sweep(tree)
            return tree
    return None


def list_candidates(mountinfo: str, membership: str) -> list[CgroupTree]:
    """List the places where groups might be made, best first: this process's own groups, then shared folders.

    Both texts are as in `/proc/self`. In version 2, only folders with the needed controllers count.
    """
    mounts, paths = _parse_mounts(mountinfo), _parse_paths(membership)
    trees: list[CgroupTree] = []
    controllers = {
        controller: mounts[controller]
        for controller in (*NEEDED, *USEFUL)
        if controller in mounts and controller in paths
    }
    if all(controller in controllers for controller in NEEDED):
        own_folders = {
            controller: _resolve_folder(mount, paths[controller]) for controller, mount in controllers.items()
        }
        trees += [CgroupTree(own_folders, unified=False)]
        trees += [
            CgroupTree(
                {controller: mount.place / SHARED_FOLDER for controller, mount in controllers.items()}, unified=False
            )
        ]
    if "" in mounts and "" in paths:
        for folder in (_get_delegated_folder(_resolve_folder(mounts[""], paths[""])), mounts[""].place / SHARED_FOLDER):
            if _has_controllers(folder):
                trees.append(CgroupTree(dict.fromkeys((*NEEDED, "cpu"), folder), unified=True))
    return trees


def sweep(tree: CgroupTree) -> None:
    """Remove the groups that dead processes created, and kill any process in them: a killed process cannot clean up
    itself.
    """
    for folder in dict.fromkeys(tree.folders.values()):
        for group_folder in folder.glob(f"{PREFIX}*"):
            if is_abandoned(group_folder.name, PREFIX):
                _kill_members(group_folder)
                _remove_group(group_folder)


def restart_in_own_group() -> None:
    """Restart this program once, as the same process, in a group that its user may divide, if that helps.

    It then does not return, so call it before anything else. Otherwise it returns at once.
    """
    uid, own_pid = os.geteuid(), str(os.getpid())
    if uid == 0 or sys.platform != "linux" or os.environ.get(RESTARTED) == own_pid or find_own_tree() is not None:
        return
    command = build_delegation_command([sys.executable, *sys.orig_argv[1:]], uid=uid, users=USERS)
    if command:
        with contextlib.suppress(OSError):
            os.execve(command[0], command, _make_systemd_environment(uid) | {RESTARTED: own_pid})  # noqa: S606 (that is the point)


def build_delegation_command(
    argv: Sequence[str], *, uid: int, systemd_run: str | None = None, users: Path = USERS
) -> list[str] | None:
    """Build the arguments that start `argv` in a group of its own, which systemd lets its user divide further.

    Returns None if the user has no systemd, if it does not answer, or if what it offers cannot bound memory and
    processes, as with groups of version 1.
    """
    program = systemd_run or shutil.which("systemd-run")
    if program is None or not (users / str(uid) / "systemd").is_dir():
        return None
    prefix = [program, "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes"]
    try:
        completed = subprocess.run(
            [*prefix, "--", "/bin/sh", "-c", DELEGATION_SCRIPT],
            env=_make_systemd_environment(uid),
            capture_output=True,
            text=True,
            timeout=TRY_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if not set(NEEDED) <= set(completed.stdout.split()):
        return None
    return [*prefix, "--", *argv]


def _make_systemd_environment(uid: int) -> dict[str, str]:
    """Return this process's variables with the folder of the user's systemd, which `su` and `cron` do not set."""
    return {"XDG_RUNTIME_DIR": str(USERS / str(uid))} | os.environ


def _list_settings(
    limits: SandboxLimits, folders: Mapping[str, Path], *, unified: bool
) -> Generator[tuple[str, str, str]]:
    memory, quota = str(limits.memory + limits.memory // MEMORY_MARGIN_DIVISOR), int(limits.cpus * PERIOD)
    if unified:
        yield from (("memory", "memory.max", memory), ("memory", "memory.swap.max", "0"))
        yield ("memory", "memory.oom.group", "1")
        if quota:
            yield ("memory", "cpu.max", f"{quota} {PERIOD}")
    else:
        yield ("memory", "memory.limit_in_bytes", memory)
        yield ("memory", "memory.memsw.limit_in_bytes", memory)
        if quota and "cpu" in folders:
            yield ("cpu", "cpu.cfs_quota_us", str(quota))
    yield ("pids", "pids.max", str(limits.processes + OWN_PROCESSES))


class _Mount(NamedTuple):
    root: str
    place: Path


def _parse_mounts(mountinfo: str) -> dict[str, _Mount]:
    """Return the mounted hierarchies by controller; the one of version 2 has the empty name."""
    mounts: dict[str, _Mount] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        mount = _Mount(fields[3], Path(fields[4]))
        names = [""] if kind[0] == "cgroup2" else kind[-1].split(",")
        mounts.update({name: mount for name in names if name in ("", *NEEDED, *USEFUL)})
    return mounts


def _parse_paths(membership: str) -> dict[str, str]:
    """Return this process's group in each hierarchy, by controller."""
    lines = (line.split(":", 2) for line in membership.splitlines())
    return {name: line[2] for line in lines if len(line) == 3 for name in line[1].split(",")}


def _resolve_folder(mount: _Mount, path: str) -> Path:
    group_path, root = PurePosixPath(path), PurePosixPath(mount.root)
    return mount.place / (
        group_path.relative_to(root) if group_path.is_relative_to(root) else group_path.relative_to("/")
    )


def _get_delegated_folder(folder: Path) -> Path:
    """Return the folder that systemd delegated to this process, even after the process has moved into a leaf of it."""
    return folder.parent if folder.name == SUPERVISOR else folder


def _has_controllers(folder: Path) -> bool:
    try:
        existing = folder if folder.is_dir() else folder.parent
        return set(NEEDED) <= set((existing / "cgroup.controllers").read_text().split())
    except OSError:
        return False


def _is_usable(tree: CgroupTree) -> bool:
    """Whether a group can be made there, entered by a process, and read."""
    try:
        if tree.unified:
            _open_up(tree.folders["memory"])
        group = Cgroup(tree, SandboxLimits())
        try:
            script = "".join('echo 0 >"$1" || exit 1; shift; ' for _ in group.procs_files) + ":"
            command = ["/bin/sh", "-c", script, "sh", *group.procs_files]
            subprocess.run(command, capture_output=True, timeout=TRY_SECONDS, check=True)
        finally:
            group.close()
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _open_up(folder: Path) -> None:
    """Allow bounded groups below a folder of version 2. Raises `OSError` if that is not possible.

    Such a folder may hold no process itself, so this process moves down into a leaf; other processes are not moved.
    """
    folder.mkdir(exist_ok=True)
    if not set(NEEDED) <= set((folder / "cgroup.subtree_control").read_text().split()):
        members = _read_members(folder)
        if members == [os.getpid()]:
            (folder / SUPERVISOR).mkdir(exist_ok=True)
            (folder / SUPERVISOR / "cgroup.procs").write_text("0")
        available = (folder / "cgroup.controllers").read_text().split()
        enabled = [name for name in (*NEEDED, "cpu") if name in available]
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in enabled))


def _read_members(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    except (OSError, ValueError):
        return []


def _kill_members(folder: Path) -> None:
    for pid in _read_members(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _remove_group(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def number_in(path: Path) -> int:
    """Return the number that is a file's only content; 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return 0


def number_after(path: Path, name: str) -> int:
    """Return the number after a name, in a file with a name and a number on each line."""
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0
