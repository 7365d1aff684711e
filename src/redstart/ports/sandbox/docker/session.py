"""A container that is kept warm: one command after another runs in it, each on files of its own."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from redstart.core.errors import SandboxDied
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.docker.container import Box, NotReady, Ran
from redstart.ports.sandbox.docker.folders import furnish, give, move_into, room_of
from redstart.ports.sandbox.docker.inside import job, keep
from redstart.ports.sandbox.docker.spec import Place, Room, User
from redstart.ports.sandbox.exchange import Exchange, exchange
from redstart.ports.sandbox.leftovers import FOLDER, mark
from redstart.ports.sandbox.port import Sandbox, Workspaces
from redstart.ports.sandbox.stage import bounded

PART = 8
"""So many times smaller than what may be written is what a later snapshot may be larger than the first."""

Boxes = Callable[[Environment, SandboxLimits, Place, Room], AbstractAsyncContextManager[Box]]


class WarmContainer:
    """One container for many executions: each finds fresh files, and empty temporary folders, but not a fresh kernel's
    view. Where one leaves a process behind or meets a limit, the next gets a new one.

    Executions are done one after another. One of another environment or other limits is run by `fresh`.
    """

    def __init__(
        self,
        fresh: Sandbox,
        workspaces: Workspaces,
        scratch: Path,
        user: User,
        boxes: Boxes,
        kept: tuple[Environment, SandboxLimits],
    ) -> None:
        self._fresh = fresh
        self._workspaces = workspaces
        self._scratch = scratch
        self._user = user
        self._boxes = boxes
        self._environment, self._limits = _mounted(kept[0]), kept[1]
        self._turn = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._box: Box | None = None
        self._room = Room()
        self._folder = Path()
        self.containers = 0
        """How many were needed so far."""

    async def run(self, execution: Execution) -> Completed:
        environment = execution.environment
        same = (_mounted(environment), execution.limits) == (self._environment, self._limits)
        if environment.services or execution.hostname or not same:
            return await self._fresh.run(execution)
        async with self._turn:
            with exchange(self._scratch, execution) as exchanged:
                ran = await self._ran(execution, exchanged)
                if ran is not None:
                    keep(ran.files, execution.collect, exchanged.outward)
                    return exchanged.completed(ran.ended)
        return await self._fresh.run(execution)

    async def close(self) -> None:
        """Removes the container and its folders."""
        self._box = None
        await self._open.aclose()

    async def _ran(self, execution: Execution, exchanged: Exchange) -> Ran | None:
        """Nothing where the container broke under it."""
        with self._workspaces.checkout(execution.snapshot) as workspace:
            furnish(execution.environment, workspace)
            box = await self._ready(execution.environment, workspace)
            move_into(workspace, self._folder / "workspace")
            move_into(exchanged.inward, self._folder / "in")
            give(self._folder / "workspace", self._user)
        try:
            ran = await box.run(job(execution, self._user, again=True, own_kernel=box.own_kernel))
        except (SandboxDied, NotReady):
            await self.close()
            return None
        except BaseException:
            await self.close()
            raise
        if not ran.clean:
            await self.close()
        return ran

    async def _ready(self, environment: Environment, workspace: Path) -> Box:
        room = room_of(workspace)
        if self._box is None or not self._fits(room):
            await self.close()
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._open = contextlib.AsyncExitStack()
            folder = tempfile.TemporaryDirectory(
                prefix=f"{FOLDER}{mark()}-session-", dir=self._scratch, ignore_cleanup_errors=True
            )
            self._folder = Path(self._open.enter_context(folder)).resolve()
            place = Place(self._folder / "workspace", self._folder / "in", self._folder / "etc")
            place.workspace.mkdir()
            place.inward.mkdir()
            try:
                box = await self._open.enter_async_context(self._boxes(environment, self._limits, place, room))
            except BaseException:
                await self._open.aclose()
                raise
            self._box, self._room = box, room
            self.containers += 1
        return self._box

    def _fits(self, room: Room) -> bool:
        more_size, more_files = room.size - self._room.size, room.files - self._room.files
        return more_size <= bounded(self._limits) // PART and more_files <= self._limits.inodes // PART


def _mounted(environment: Environment) -> Environment:
    """The environment without what is brought along with each snapshot."""
    brought = ("variables", "copies", "left_out", "chosen", "git_refs", "git_head", "git_shallow")
    return Environment.model_validate(environment.model_dump(exclude=set(brought)))
