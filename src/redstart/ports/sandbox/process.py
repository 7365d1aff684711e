"""No sandbox at all: a plain process with limits, for machines that have nothing better and users who asked for it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from pathlib import Path, PurePosixPath

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution
from redstart.ports.sandbox.exchange import exchange, given, placed, variables
from redstart.ports.sandbox.launch import kill_group, launch, limited
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.prepare import bring_copies, make_git
from redstart.ports.sandbox.watch import Watchman

PROC = Path("/proc")
BURIAL_SECONDS = 5.0


class Process:
    """Runs each command in the checkout itself, with the user's rights: it can read, write and reach all they can.

    It cannot mount, so the checkout is not at the environment's `mount`: paths that begin with it are mapped, and the
    checkout comes first on Python's path, before an editable install of the real repo.
    """

    tier = "process (no sandbox)"

    def __init__(self, workspaces: Workspaces, scratch: Path) -> None:
        self._workspaces = workspaces
        self._scratch = scratch

    async def run(self, execution: Execution) -> Completed:
        environment = execution.environment
        with (
            exchange(self._scratch, execution) as exchanged,
            self._workspaces.checkout(execution.snapshot) as checkout,
        ):
            bring_copies(environment, checkout)
            make_git(environment, checkout / ".git", objects=environment.git_objects)
            root = str(checkout.resolve())
            inward, outward = str(exchanged.inward), str(exchanged.outward)
            home, temporary = exchanged.folder / "home", exchanged.folder / "tmp"
            home.mkdir()
            temporary.mkdir()

            def here(text: str) -> str:
                parts = (mapped(part, environment, root) for part in text.split(":"))
                return placed(":".join(parts), inward, outward)

            asked = {name: here(value) for name, value in given(execution).items()}
            asked["PYTHONPATH"] = ":".join(filter(None, (root, f"{root}/src", asked.get("PYTHONPATH", ""))))
            own = variables(environment.python, asked, home=str(home), temporary=str(temporary))

            def kill(leader: int) -> None:
                kill_group(leader)
                kill_marked(str(exchanged.folder))

            watchman = Watchman(execution.limits, group=None, folders=(checkout, exchanged.folder))
            command = limited(
                execution.limits, str(PurePosixPath(root, execution.cwd)), [here(each) for each in execution.argv]
            )
            try:
                ended = await launch(command, variables=own, limits=execution.limits, kill=kill, watch=watchman.watch)
            except OSError as error:
                raise SandboxUnavailable(f"A process cannot be started: {error}") from error
            return exchanged.completed(dataclasses.replace(ended, stopped=ended.stopped or watchman.disk()))


def mapped(text: str, environment: Environment, root: str) -> str:
    """A path under the mount as the same path under `root`; anything else, and what is read-only, as it is."""
    path, mount = PurePosixPath(text), PurePosixPath(environment.mount)
    if not path.is_relative_to(mount) or any(path.is_relative_to(each) for each in environment.read_only):
        return text
    return str(PurePosixPath(root, path.relative_to(mount)))


def kill_marked(marker: str) -> None:
    """Kills every process whose variables name `marker`, until there is none: those that left the process group.

    Works where `/proc` shows variables, so on Linux; elsewhere the process group has to be enough.
    """
    over = time.monotonic() + BURIAL_SECONDS
    while (found := _marked(marker.encode())) and time.monotonic() < over:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _marked(marker: bytes) -> list[int]:
    found: list[int] = []
    for name in os.listdir(PROC) if PROC.is_dir() else ():  # noqa: PTH208 (it is walked after every execution)
        if name.isdigit():
            with contextlib.suppress(OSError):
                if marker in Path(PROC, name, "environ").read_bytes():
                    found.append(int(name))
    return found
