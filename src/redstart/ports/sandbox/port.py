"""The port to a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from redstart.core.change import Snapshot
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits


class SandboxSession(Protocol):
    """A sandbox that is kept warm for a sequence of executions: for quick checks, never for a verdict."""

    async def run(self, execution: Execution) -> Completed:
        """Run one command like `Sandbox.run`, except that code that does not depend on the project may already be
        loaded.

        Every execution finds exactly the files of its own snapshot, has its own limits, and is over, with all of its
        processes, before this returns. If it breaks the warm sandbox, it is repeated in a fresh one, and the next
        execution starts anew. Whatever the warm sandbox cannot do as a fresh one would (another environment or other
        limits than the session's, another kind of command) runs in a fresh one at once.

        Executions of one session may be requested at the same time.
        """
        ...


class SandboxLack(StrEnum):
    """A protection that this machine does not offer. The sandbox still isolates without it, but limits less."""

    memory_limit = "memory_limit"
    bounded_disk = "bounded_disk"
    own_user = "own_user"
    call_filter = "call_filter"


class Sandbox(Protocol):
    tier: str
    """The kind of isolation, as a short text for the user: `bwrap`, `process (no sandbox)`."""

    async def run(self, execution: Execution) -> Completed:
        """Run one command on a fresh, writable copy of the snapshot, mounted at the environment's `mount`.

        Inside there is no network except a working loopback, no secret, and no file of the host except the
        environment's read-only paths and the system's programs. What the command writes is discarded, except `collect`.

        Returns a `Completed` whatever the command does: a non-zero exit, a crash, a limit, a timeout, a program that
        does not exist. When it returns, no process that the command started is alive, and nothing of it is left on the
        host: no folder, mount or group. Files for `collect` are read as untrusted: only regular files with one name,
        through no link.

        Raises `SandboxUnavailable`, with the remedy, if the sandbox itself cannot be started, and its subclass
        `SandboxDied`, at once, if it was ended from outside while the command ran.
        """
        ...


@runtime_checkable
class WarmSandbox(Sandbox, Protocol):
    """A sandbox that can keep itself warm."""

    def open_session(
        self, environment: Environment, limits: SandboxLimits
    ) -> AbstractAsyncContextManager[SandboxSession]:
        """Keep a warm sandbox until the end of the context; it is made when it is first needed.

        Entering the context does not fail: a sandbox that cannot be warm here gives a session whose runs are all fresh.
        At the end no process, folder, mount, group or container of the session is left.
        """
        ...


def is_isolating(sandbox: Sandbox) -> bool:
    """Whether it isolates at all; a plain process declares that it does not."""
    return getattr(sandbox, "isolates", True)


def open_sandbox_session(
    sandbox: Sandbox, environment: Environment, limits: SandboxLimits
) -> AbstractAsyncContextManager[SandboxSession]:
    """Open the sandbox's own session; for a sandbox without a warm form, a session that simply runs."""
    return sandbox.open_session(environment, limits) if isinstance(sandbox, WarmSandbox) else nullcontext(sandbox)


class Workspaces(Protocol):
    """Where a sandbox gets its copies of snapshots."""

    def checkout(self, snapshot: Snapshot) -> AbstractContextManager[Path]:
        """Make a folder with exactly the files of the snapshot; it is the caller's own and removed at the end."""
        ...


SandboxFactory = Callable[[Workspaces, Path], Sandbox]
"""Makes a sandbox that gets its copies from these workspaces and may use this scratch folder."""
