"""Commands that run in a sandbox, and how they ended."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from redstart.core.change import Snapshot
from redstart.core.frozen import FrozenValue

IN = "{redstart:in}"
"""Placeholder in an argument or variable of an `Execution`: the folder that holds `files_in`, read-only."""
OUT = "{redstart:out}"
"""Placeholder for the folder that `collect` is read from."""
HOST_NAME = "build-7f4c"
"""The host name in a sandbox: an ordinary name, from which code under test learns nothing."""


class ExitCause(StrEnum):
    """Why an execution ended. `ok` is exit code 0, `failed` any other code that the program chose itself.

    The other values name the limit that was reached, as far as the sandbox can tell. Without a control group, the
    sandbox relies on the last output of the program. A program that reaches a limit and recovers ends with `ok`. If
    the kernel killed a process for memory, the cause is `memory` whatever the exit code.
    """

    ok = "ok"
    failed = "failed"
    cpu = "cpu"
    memory = "memory"
    processes = "processes"
    file_size = "file_size"
    disk = "disk"
    output = "output"
    timeout = "timeout"
    signal = "signal"


class Variation(NamedTuple):
    """The conditions of a run that are pinned, and that a rerun may vary to see whether a result depends on them."""

    hash_seed: int = 0
    seed: int = 0
    """Seed of every generator that takes one: `order`, pytest-randomly and hypothesis."""
    tz: str = "UTC"
    order: str = ""
    """`reversed` or `shuffled` (by `seed`); empty for the runner's default order."""

    @property
    def variables(self) -> dict[str, str]:
        return {"PYTHONHASHSEED": str(self.hash_seed), "TZ": self.tz}


PINNED = Variation()
"""The conditions of every run that is not a rerun."""


class SandboxLimits(FrozenValue):
    """The resource limits of one execution. Times are in seconds, sizes in bytes."""

    wall: float = 600.0
    cpu: int = 600
    """Processor time of each process, and of all processes together."""
    memory: int = 4 << 30
    """Memory of each process, and of all processes together if the kernel can count that."""
    file_size: int = 256 << 20
    output: int = 1_000_000
    """Size up to which the head and tail of the output are kept."""
    flood: int = 256 << 20
    """The execution is killed when it has printed more than this."""
    processes: int = 1024
    """Processes and threads at the same time."""
    disk: int = 2 << 30
    """Disk space for the workspace, collected files and temporary folders: for all of them together if the sandbox can
    limit that, else for each. They are kept in memory there, so the limit is at most half of `memory`.
    """
    inodes: int = 200_000
    """Files, folders and links that the execution may create in the workspace."""
    cpus: float = 0.0
    """Number of processors that the execution may use at once; 0 for all."""


TIGHT = SandboxLimits(
    wall=10.0,
    cpu=5,
    memory=256 << 20,
    file_size=10 << 20,
    output=100_000,
    flood=10 << 20,
    processes=64,
    disk=64 << 20,
    inodes=10_000,
    cpus=1.0,
)
"""The limits of snippets and probes."""


class Environment(FrozenValue):
    """The environment in which the project's code runs. It is the same on every machine, so recorded paths stay
    valid."""

    mount: str
    """The repo's real path. The workspace is mounted there, so that an editable install imports the workspace."""
    python: str
    """The project's interpreter."""
    read_only: tuple[str, ...] = ()
    """Absolute paths that are visible, read-only, at the same place: the interpreter's prefix and its base."""
    home: str = "/home/redstart"
    """A folder that is empty except for the paths of `read_only` in it."""
    variables: dict[str, str] = {}
    chosen: str = ""
    """Why this interpreter was chosen, in the user's words: `--python`, `.venv in the project`, `poetry`."""
    copies: tuple[str, ...] = ()
    """Files and folders that git ignores, relative to the mount. They are not in a snapshot, but are copied from the
    real repo into each workspace. None of them overwrites a file of the snapshot."""
    links: dict[str, str] = {}
    """Links at the root of each workspace, such as `node_modules`, with their targets in `read_only`. None of them
    replaces a file of the snapshot."""
    left_out: tuple[str, ...] = ()
    """Ignored files that were too large to be copied."""
    git_objects: str = ""
    """The folder of git objects of the real repo; empty if the workspace has no history."""
    git_head: str = ""
    """The commit that is checked out."""
    git_refs: str = ""
    """Tags and the current branch, as the text of git's `packed-refs`."""
    git_shallow: str = ""
    """Where the history of a shallow clone ends, as the text of git's `shallow`."""
    services: tuple[str, ...] = ()
    """Ports of the host that are reachable at the same address, as `host:port` on loopback. No others are."""


class Execution(FrozenValue):
    """One command on a fresh copy of a snapshot. Its behavior depends only on this request.

    `argv` and `variables` may name the folders `INPUT_FOLDER` and `OUTPUT_FOLDER` above.
    """

    argv: tuple[str, ...]
    snapshot: Snapshot
    environment: Environment
    limits: SandboxLimits = SandboxLimits()
    variables: dict[str, str] = {}
    cwd: str = ""
    """Relative to the mount."""
    files_in: dict[str, str] = {}
    """Texts of the files that the command may read, by name."""
    collect: tuple[str, ...] = ()
    """Names of the files that the command may leave in `OUTPUT_FOLDER`."""
    hostname: str = Field(default="", exclude_if=lambda name: not name)
    """The host name, if the sandbox can set one; empty for the default."""


class Completed(FrozenValue):
    """The result of an execution. An expected end (a timeout, a crash, a missing binary) is a value; a dead sandbox is
    an exception."""

    exit_code: int
    """The program's exit code; 128 + n if signal n ended it; 127 if it could not be started."""
    cause: ExitCause
    output: str
    """Standard output and standard error together, at most `limits.output` bytes."""
    truncated: bool = False
    files: dict[str, str] = {}
    """The files of `collect` that exist as regular files."""
    wall: float = 0.0
    cpu: float = 0.0
    peak_memory: int = 0
    """Bytes of all processes together if the kernel can count that, else of the largest process; 0 if unknown."""
