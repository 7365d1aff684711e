"""The port to a sandbox."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from redstart.core.change import Snapshot
from redstart.core.shell import Completed, Execution


class Sandbox(Protocol):
    tier: str
    """What kind of boundary it is, in a word that is shown to the user: `bwrap`, `process (no sandbox)`."""

    async def run(self, execution: Execution) -> Completed:
        """Runs one command on a fresh, writable copy of the snapshot, mounted at the environment's `mount`.

        Inside there is no network but a working loopback, no secret, no file of the host but the environment's
        read-only paths and the system's programs; what the command writes is thrown away, except `collect`.

        Returns a `Completed` whatever the command does: a non-zero exit, a crash, a limit, a time-out, a program that
        does not exist. When it returns, no process that the command started is alive, and nothing of it is left on the
        host: no folder, mount or group. What it left for `collect` is read as what it is, untrusted: only regular
        files of one name, through no link.

        Raises `SandboxUnavailable`, with the remedy, where the sandbox itself cannot be started, and its kind
        `SandboxDied`, at once, where it was ended from outside while the command ran.
        """
        ...


class Workspaces(Protocol):
    """Where a sandbox gets its copies from."""

    def checkout(self, snapshot: Snapshot) -> AbstractContextManager[Path]:
        """A folder with exactly the files of the snapshot, the caller's own, removed at the end."""
        ...
