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
    """A sandbox that is kept warm for executions which follow one another: for a quick look, never for a verdict."""

    async def run(self, execution: Execution) -> Completed:
        """As `Sandbox.run`, but that what does not depend on the project may have been loaded before.

        Every execution finds exactly the files of its own snapshot, has its own limits, and is over, with all of its
        processes, before this returns. Where it breaks what is kept warm, it is repeated in a fresh sandbox, and the
        next one begins anew. Whatever the warm sandbox cannot do as a fresh one would (another environment or other
        limits than the session's, another kind of command) is run in a fresh one at once.

        Executions of one session may be asked for at the same time.
        """
        ...


class SandboxLack(StrEnum):
    """Something that a sandbox could not get on this machine. It holds without, but bounds less."""

    memory_limit = "memory_limit"
    bounded_disk = "bounded_disk"
    own_user = "own_user"
    call_filter = "call_filter"


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


@runtime_checkable
class WarmSandbox(Sandbox, Protocol):
    """One that can keep itself warm."""

    def session(self, environment: Environment, limits: SandboxLimits) -> AbstractAsyncContextManager[SandboxSession]:
        """Keeps a warm sandbox until the end of the context; what is kept is made when it is first needed.

        Entering it does not fail: a sandbox that cannot be warm here gives a session whose runs are all fresh. At the
        end no process, folder, mount, group or container of the session is left.
        """
        ...


def isolates(sandbox: Sandbox) -> bool:
    """Whether it is a boundary at all; a plain process says that it is none."""
    return getattr(sandbox, "isolates", True)


def session_of(
    sandbox: Sandbox, environment: Environment, limits: SandboxLimits
) -> AbstractAsyncContextManager[SandboxSession]:
    """The sandbox's own session; for one without a warm form, a session that simply runs."""
    return sandbox.session(environment, limits) if isinstance(sandbox, WarmSandbox) else nullcontext(sandbox)


class Workspaces(Protocol):
    """Where a sandbox gets its copies from."""

    def checkout(self, snapshot: Snapshot) -> AbstractContextManager[Path]:
        """A folder with exactly the files of the snapshot, the caller's own, removed at the end."""
        ...


SandboxFactory = Callable[[Workspaces, Path], Sandbox]
"""Makes a sandbox that gets its copies from these workspaces and may use this scratch folder."""
