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
from redstart.ports.sandbox.files import Exchange, build_variables, exchange, fill_placeholders, get_requested_variables
from redstart.ports.sandbox.launch import build_limited_command, kill_group, launch
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.usage_monitor import ExecutionWatch
from redstart.ports.sandbox.workspace import bring_copies, make_git

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
            folders = (ready.checkout, ready.run_exchange.folder)
            monitor = ExecutionWatch(execution.limits, group=None, folders=folders)
            limits, command_variables = execution.limits, ready.variables
            try:
                end = await launch(
                    ready.command, variables=command_variables, limits=limits, kill=ready.kill, watch=monitor.watch
                )
            except OSError as error:
                raise SandboxUnavailable(f"A process cannot be started: {error}") from error
            return ready.run_exchange.build_completed(
                dataclasses.replace(end, stop_cause=end.stop_cause or monitor.check_disk())
            )


class Ready(NamedTuple):
    """A command that can be started in its checkout, which stands in for the environment's `mount`."""

    run_exchange: Exchange
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
        kill_marked(str(self.run_exchange.folder))


@contextlib.contextmanager
def in_checkout(workspaces: Workspaces, scratch: Path, execution: Execution) -> Generator[Ready]:
    """Make a checkout and folders beside it, and map the execution's paths under the mount to them."""
    environment = execution.environment
    with exchange(scratch, execution) as file_exchange, workspaces.checkout(execution.snapshot) as checkout:
        bring_copies(environment, checkout)
        make_git(environment, checkout / ".git", objects=environment.git_objects)
        root = str(checkout.resolve())
        home, temporary = file_exchange.folder / "home", file_exchange.folder / "tmp"
        home.mkdir()
        temporary.mkdir()

        def map_text(text: str) -> str:
            parts = (map_path(part, environment, root) for part in text.split(":"))
            return fill_placeholders(":".join(parts), str(file_exchange.input_folder), str(file_exchange.output_folder))

        requested = {name: map_text(value) for name, value in get_requested_variables(execution).items()}
        requested["PYTHONPATH"] = ":".join(filter(None, (root, f"{root}/src", requested.get("PYTHONPATH", ""))))
        command_variables = build_variables(environment.python, requested, home=str(home), temporary=str(temporary))
        cwd = str(PurePosixPath(root, execution.cwd))
        command = build_limited_command(execution.limits, cwd, [map_text(argument) for argument in execution.argv])
        yield Ready(file_exchange, checkout, root, str(home), str(temporary), command_variables, command)


def map_path(text: str, environment: Environment, root: str) -> str:
    """Map a path under the mount to the same path under `root`; leave other and read-only paths as they are."""
    path, mount = PurePosixPath(text), PurePosixPath(environment.mount)
    if not path.is_relative_to(mount) or any(path.is_relative_to(folder) for folder in environment.read_only):
        return text
    return str(PurePosixPath(root, path.relative_to(mount)))


def kill_marked(marker: str) -> None:
    """Kill every process whose variables contain `marker`, until there is none. This finds processes that left the
    process group.

    This works only on Linux, where `/proc` shows a process's variables. Elsewhere, killing the process group must be
    enough.
    """
    deadline = time.monotonic() + BURIAL_SECONDS
    while (pids := _find_marked(marker.encode())) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _find_marked(marker: bytes) -> list[int]:
    pids: list[int] = []
    for name in os.listdir(PROC) if PROC.is_dir() else ():  # noqa: PTH208 (this runs after every execution)
        if name.isdigit():
            with contextlib.suppress(OSError):
                if marker in Path(PROC, name, "environ").read_bytes():
                    pids.append(int(name))
    return pids
