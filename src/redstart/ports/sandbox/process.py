"""No sandbox at all: a plain process with limits, for machines without a sandbox and users who ask for it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution
from redstart.ports.sandbox.exchange import Exchange, exchange, given, placed, variables
from redstart.ports.sandbox.launch import kill_group, launch, limited
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.prepare import bring_copies, make_git
from redstart.ports.sandbox.watch import ExecutionWatch

PROC = Path("/proc")
BURIAL_SECONDS = 5.0


class Process:
    """Runs each command in the checkout itself, with the user's rights: it can read, write and reach all they can.

    It cannot mount, so the checkout is not at the environment's `mount`: paths that begin with it are mapped, and the
    checkout comes first on Python's path, before an editable install of the real repo.
    """

    tier = "process (no sandbox)"
    isolates = False

    def __init__(self, workspaces: Workspaces, scratch: Path) -> None:
        self._workspaces = workspaces
        self._scratch = scratch

    async def run(self, execution: Execution) -> Completed:
        with in_checkout(self._workspaces, self._scratch, execution) as ready:
            folders = (ready.checkout, ready.exchanged.folder)
            watchman = ExecutionWatch(execution.limits, group=None, folders=folders)
            limits, own = execution.limits, ready.variables
            try:
                ended = await launch(ready.command, variables=own, limits=limits, kill=ready.kill, watch=watchman.watch)
            except OSError as error:
                raise SandboxUnavailable(f"A process cannot be started: {error}") from error
            return ready.exchanged.completed(dataclasses.replace(ended, stopped=ended.stopped or watchman.disk()))


class Ready(NamedTuple):
    """A command that can be started in its checkout, which stands in for the environment's `mount`."""

    exchanged: Exchange
    checkout: Path
    root: str
    """The checkout by its real path."""
    home: str
    temporary: str
    variables: dict[str, str]
    command: list[str]

    def kill(self, leader: int) -> None:
        """End the command's group, and every process that left it."""
        kill_group(leader)
        kill_marked(str(self.exchanged.folder))


@contextlib.contextmanager
def in_checkout(workspaces: Workspaces, scratch: Path, execution: Execution) -> Generator[Ready]:
    """Make a checkout and folders beside it, and map the execution's paths under the mount to them."""
    environment = execution.environment
    with exchange(scratch, execution) as exchanged, workspaces.checkout(execution.snapshot) as checkout:
        bring_copies(environment, checkout)
        make_git(environment, checkout / ".git", objects=environment.git_objects)
        root = str(checkout.resolve())
        home, temporary = exchanged.folder / "home", exchanged.folder / "tmp"
        home.mkdir()
        temporary.mkdir()

        def here(text: str) -> str:
            parts = (mapped(part, environment, root) for part in text.split(":"))
            return placed(":".join(parts), str(exchanged.inward), str(exchanged.outward))

        asked = {name: here(value) for name, value in given(execution).items()}
        asked["PYTHONPATH"] = ":".join(filter(None, (root, f"{root}/src", asked.get("PYTHONPATH", ""))))
        own = variables(environment.python, asked, home=str(home), temporary=str(temporary))
        cwd = str(PurePosixPath(root, execution.cwd))
        command = limited(execution.limits, cwd, [here(each) for each in execution.argv])
        yield Ready(exchanged, checkout, root, str(home), str(temporary), own, command)


def mapped(text: str, environment: Environment, root: str) -> str:
    """Map a path under the mount to the same path under `root`; leave other and read-only paths as they are."""
    path, mount = PurePosixPath(text), PurePosixPath(environment.mount)
    if not path.is_relative_to(mount) or any(path.is_relative_to(each) for each in environment.read_only):
        return text
    return str(PurePosixPath(root, path.relative_to(mount)))


def kill_marked(marker: str) -> None:
    """Kill every process whose variables contain `marker`, until there is none: those that left the process group.

    Works where `/proc` shows variables, so on Linux; elsewhere killing the process group has to be enough.
    """
    over = time.monotonic() + BURIAL_SECONDS
    while (found := _marked(marker.encode())) and time.monotonic() < over:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _marked(marker: bytes) -> list[int]:
    found: list[int] = []
    for name in os.listdir(PROC) if PROC.is_dir() else ():  # noqa: PTH208 (this runs after every execution)
        if name.isdigit():
            with contextlib.suppress(OSError):
                if marker in Path(PROC, name, "environ").read_bytes():
                    found.append(int(name))
    return found
