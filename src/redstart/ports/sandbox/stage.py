"""The few short steps on the host before bubblewrap itself starts.

The workspace becomes the lower layer of an overlay whose upper layer is a file system in memory, bounded in size and in
number of files; temporary folders lie on the same file system. Root gives up its rights for a user ID that owns nothing
else. All of it is visible only in a mount namespace of its own, and disappears with the last process in it.
"""

from __future__ import annotations

import functools
import itertools
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox.leftovers import open_temporary_folder

TOOLS = "/usr/bin:/bin:/usr/sbin:/sbin"
PLACE = "/sys"
"""Where the file system is mounted in its own namespace: a folder that every system has, that anybody may pass through,
and in which nobody has a repo."""
WORKSPACE, OUTWARD = f"{PLACE}/workspace", f"{PLACE}/out"
TEMPORARY, SHARED_MEMORY, HOME = f"{PLACE}/temporary", f"{PLACE}/shm", f"{PLACE}/home"
UPPER, WORK = f"{PLACE}/upper", f"{PLACE}/work"
FIRST_USER, USERS = 60600, 500
"""A range of user IDs that systems leave unused."""
TRY_SECONDS = 10.0

_users = itertools.count(os.getpid())


class ProcessRights(NamedTuple):
    """What this process can do before bubblewrap starts."""

    mounts: bool = False
    """Whether it can mount an overlay on a bounded file system."""
    drops: bool = False
    """Whether it is root and can become another user."""


class StagedExecution:
    """The preparation of one execution: where things will be found, and the argument list that does it."""

    def __init__(self, rights: ProcessRights, limits: SandboxLimits, procs_files: Sequence[str] = ()) -> None:
        self.mounts = rights.mounts
        self.user = FIRST_USER + next(_users) % USERS if rights.drops else None
        self._limits = limits
        self._procs_files = procs_files
        self._staged_paths: dict[str, str] = {}

    def get_source(self, path: str) -> str:
        """Return where bubblewrap finds a path of the host: elsewhere, if its user could not reach it there."""
        if not self.mounts or self.user is None or path.startswith(f"{PLACE}/") or is_reachable(path):
            return path
        return self._staged_paths.setdefault(path, f"{PLACE}/{len(self._staged_paths)}")

    def get_temporary_folders(self, home: str) -> dict[str, str]:
        """Map the temporary folders inside to where they lie; empty if they have to be made otherwise."""
        return {"/tmp": TEMPORARY, "/dev/shm": SHARED_MEMORY, home: HOME} if self.mounts else {}  # noqa: S108 (its own)

    def take_ownership(self, *folders: Path) -> None:
        """Make the command's user the owner of the folders, with all that is in them."""
        if self.user is None:
            return
        for folder in folders:
            for top, names, files in os.walk(folder):
                for name in (*names, *files):
                    os.lchown(os.path.join(top, name), self.user, self.user)  # noqa: PTH118 (of thousands of files)
            os.lchown(folder, self.user, self.user)

    def build_argv(self, command: Sequence[str], workspace: Path) -> list[str]:
        """Build the command with all preparation before it. A step that fails ends it with the step's message."""
        steps = [f"echo 0 >{shlex.quote(procs_file)}" for procs_file in self._procs_files]
        if self.mounts:
            steps.insert(0, "exec 2>&3 3>&-")
            steps += self._build_mount_steps(workspace)
        if not steps:
            return list(command)
        drop = f"{shlex.join(self._build_drop_command())} " if self.user is not None else ""
        script = f'{"; ".join(["set -e", *steps])}; exec {drop}"$@"'
        return [*(_build_unshare_command(self.user) if self.mounts else ()), "/bin/sh", "-c", script, "sh", *command]

    def find_first_process(self, outermost: int) -> int | None:
        """Find the child process whose end ends all others, below the started process; None if there is none yet."""
        if not self.mounts:
            return None
        try:
            children = Path(f"/proc/{outermost}/task/{outermost}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def _build_mount_steps(self, workspace: Path) -> list[str]:
        mount, has_user = shlex.quote(_find_tool("mount") or "mount"), self.user is not None
        mkdir, chown = shlex.quote(_find_tool("mkdir") or "mkdir"), shlex.quote(_find_tool("chown") or "chown")
        options = f"size={get_writable_size(self._limits)},nr_inodes={self._limits.inodes},mode=0755,nosuid,nodev"
        layers = f"lowerdir=.,upperdir={UPPER},workdir={WORK},nosuid,nodev"
        folders = [WORKSPACE, OUTWARD, UPPER, WORK, HOME, TEMPORARY, SHARED_MEMORY]
        folders += [place for path, place in self._staged_paths.items() if Path(path).is_dir()]
        return [
            f"{mount} -n -t tmpfs -o {options} redstart {PLACE}",
            f"{mkdir} {' '.join(folders)}",
            *(
                (f"{chown} {self.user}:{self.user} {UPPER} {OUTWARD} {HOME} {TEMPORARY} {SHARED_MEMORY}",)
                if has_user
                else ()
            ),
            # The folder is given as `.`, since some characters of a path have a meaning in mount options.
            f"cd -- {shlex.quote(str(workspace))}",
            f"{mount} -n -t overlay -o {layers},{'redirect_dir=on' if has_user else 'userxattr'} redstart {WORKSPACE}",
            "cd /",
            *(
                step
                for path, place in self._staged_paths.items()
                for step in (
                    *(() if Path(path).is_dir() else (f": >{place}",)),
                    f"{mount} -n --rbind {shlex.quote(path)} {place}",
                )
            ),
        ]

    def _build_drop_command(self) -> list[str]:
        user = str(self.user)
        return [
            _find_tool("setpriv") or "setpriv",
            *("--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs", "--inh-caps=-all"),
            *("--pdeathsig", "KILL", "--"),  # the change of user has reset it
        ]


def get_writable_size(limits: SandboxLimits) -> int:
    """Return how much may be written: it stays in memory, counts there too, and must reach its own limit first."""
    return min(limits.disk, limits.memory // 2)


def is_reachable(path: str) -> bool:
    """Whether every user can reach a file or folder, and read it."""
    try:
        resolved = Path(path).resolve(strict=True)
        needed = 0o005 if resolved.is_dir() else 0o004
        on_the_way = all(parent.stat().st_mode & 0o001 for parent in resolved.parents)
        return on_the_way and resolved.stat().st_mode & needed == needed
    except OSError:
        return False


def _build_unshare_command(user: int | None) -> list[str]:
    """Build the arguments that make everything after them end with this process: bubblewrap's own guarantee has gaps.

    Everything runs in a process namespace whose first process dies with its parent. The parent asks the kernel to kill
    it when this process dies, and continues only if this process is still alive afterwards. Its messages are discarded,
    because it would report the end of its child.
    """
    user_options = ("--user", "--map-root-user") if user is None else ()
    return [
        *(_find_tool("setpriv") or "setpriv", "--pdeathsig", "KILL", "--"),
        *("/bin/sh", "-c", 'test "$PPID" = "$1" || exit 1; shift; exec "$@" 3>&2 2>/dev/null', "sh", str(os.getpid())),
        *(_find_tool("unshare") or "unshare", *user_options, "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("--mount", "--propagation", "private", "--"),
    ]


@functools.cache
def _find_tool(name: str) -> str | None:
    return shutil.which(name, path=TOOLS)


@functools.cache
def get_own_rights() -> ProcessRights:
    """Return what this process can actually do; the check runs once."""
    return find_rights(os.geteuid() == 0)


def find_rights(root: bool, tool: Callable[[str], str | None] = _find_tool) -> ProcessRights:
    """Find what can be done as root, or as another user, with the available tools."""
    needed = ("unshare", "setpriv", "mount", "mkdir", "chown")
    full = ProcessRights(mounts=True, drops=root)
    return full if all(map(tool, needed)) and _is_usable(full) else ProcessRights()


def _is_usable(rights: ProcessRights) -> bool:
    """Try a whole preparation, and check that an emptied folder of the lower layer stays empty in the overlay.

    It does not if the kernel's file systems in memory cannot store the overlay's attributes.
    """
    script = 'cd "$1"; test -f a/b; rm -r a; mkdir a; test ! -e a/b; echo x >"$2/x"'
    with open_temporary_folder("try") as folder:
        lower = folder / "lower"
        (lower / "a").mkdir(parents=True)
        (lower / "a" / "b").touch()
        stage = StagedExecution(rights, SandboxLimits())
        argv = stage.build_argv(["/bin/sh", "-ec", script, "sh", WORKSPACE, OUTWARD], lower)
        try:
            stage.take_ownership(lower)
            subprocess.run(argv, env={"PATH": TOOLS}, capture_output=True, timeout=TRY_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError):
            return False
    return True
