"""What is run in a sandbox and how it ended."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from redstart.core.change import Snapshot
from redstart.core.noun import FrozenValue

IN = "{redstart:in}"
"""In an argument or variable of an `Execution`: the folder that holds `files_in`, read-only."""
OUT = "{redstart:out}"
"""Likewise: the folder from which `collect` is read back."""
HOST_NAME = "build-7f4c"
"""What a sandbox calls its host: a name like any other, so that code under test learns nothing from it."""


class ExitCause(StrEnum):
    """Why an execution ended. `ok` is exit code 0, `failed` any other code that the program chose itself.

    The rest name the limit that was met, as far as a sandbox can tell: where it has no group of the kernel's to ask,
    the last words of the program have to do. Whoever meets a limit and copes ends with `ok`; only where the kernel had
    to kill a process for memory is it `memory` whatever the exit code.
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
    """What of a run is pinned, and may be varied to see whether a result depends on it."""

    hash_seed: int = 0
    seed: int = 0
    """Of every generator that takes one: the order below, pytest-randomly's and hypothesis's."""
    tz: str = "UTC"
    order: str = ""
    """`reversed` or `shuffled` (by `seed`); empty for the runner's own order."""

    @property
    def variables(self) -> dict[str, str]:
        return {"PYTHONHASHSEED": str(self.hash_seed), "TZ": self.tz}


PINNED = Variation()
"""As every run is made that is not a repeat."""


class SandboxLimits(FrozenValue):
    """What one execution may use. Time is in seconds, sizes are in bytes."""

    wall: float = 600.0
    cpu: int = 600
    """Of processor time: of each process, and of all together."""
    memory: int = 4 << 30
    """Of each process, and of all together where the kernel can count that."""
    file_size: int = 256 << 20
    output: int = 1_000_000
    """Of what it prints, head and tail are kept up to this size."""
    flood: int = 256 << 20
    """It is ended when it has printed more than this."""
    processes: int = 1024
    """And threads, at any one time."""
    disk: int = 2 << 30
    """What it may write: to the workspace, for collection and to temporary folders, together where a sandbox can bound
    them together, else to each of them. It is kept in memory there, so that never more than half of `memory` is given.
    """
    inodes: int = 200_000
    """Files, folders and links that it may make in the workspace."""
    cpus: float = 0.0
    """Processors that it may keep busy at once, as a number of them; 0 for all."""


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
"""For snippets and probes."""


class Environment(FrozenValue):
    """Where code of the target runs: the same on whatever machine, so that paths recorded there hold here."""

    mount: str
    """The repo's real path: the workspace is mounted there, so that an editable install imports the workspace."""
    python: str
    """The target's interpreter."""
    read_only: tuple[str, ...] = ()
    """Absolute paths that are visible, read-only, at the same place: the interpreter's prefix and its base."""
    home: str = "/home/redstart"
    """An empty folder but for what of `read_only` lies in it."""
    variables: dict[str, str] = {}
    chosen: str = ""
    """Why this interpreter, in the user's words: `--python`, `.venv in the project`, `poetry`."""
    copies: tuple[str, ...] = ()
    """Files and folders that git ignores, relative to the mount: not in a snapshot, but copied from the real repo into
    each workspace. None of them is written over a file of the snapshot."""
    links: dict[str, str] = {}
    """Names at the root of each workspace to paths of `read_only` that they lead to, such as `node_modules`. None takes
    the place of a file of the snapshot."""
    left_out: tuple[str, ...] = ()
    """What git ignores and was too large to be copied."""
    git_objects: str = ""
    """The real repo's folder of git objects; empty where the workspace is to have no history."""
    git_head: str = ""
    """The commit that is checked out."""
    git_refs: str = ""
    """Tags and the current branch, as the text of git's `packed-refs`."""
    git_shallow: str = ""
    """Where the history of a shallow clone ends, as the text of git's `shallow`."""
    services: tuple[str, ...] = ()
    """Ports of the host that can be reached at the same address, as `host:port` on loopback; no other can."""


class Execution(FrozenValue):
    """One command on a fresh copy of a snapshot. What it does depends on this request alone.

    `argv` and `variables` may name the folders `IN` and `OUT` above.
    """

    argv: tuple[str, ...]
    snapshot: Snapshot
    environment: Environment
    limits: SandboxLimits = SandboxLimits()
    variables: dict[str, str] = {}
    cwd: str = ""
    """Relative to the mount."""
    files_in: dict[str, str] = {}
    """Name to text of files that the command may read."""
    collect: tuple[str, ...] = ()
    """Names of files that the command may leave in `OUT`."""
    hostname: str = Field(default="", exclude_if=lambda name: not name)
    """What the machine calls itself, where the sandbox can choose that; empty for its usual name."""


class Completed(FrozenValue):
    """How it ended. An expected end (a time-out, a crash, a missing binary) is here; a dead sandbox is an exception."""

    exit_code: int
    """The program's own; 128 + n where signal n ended it; 127 where it could not be started."""
    cause: ExitCause
    output: str
    """Standard output and error together, at most `limits.output` bytes of it."""
    truncated: bool = False
    files: dict[str, str] = {}
    """Those of `collect` that were left as regular files."""
    wall: float = 0.0
    cpu: float = 0.0
    peak_memory: int = 0
    """Bytes: of all processes together where the kernel can count that, else of the largest; 0 where it is unknown."""
