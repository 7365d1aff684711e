"""A session over a sandbox that can be kept warm: who is run warm, who fresh, and what happens when it dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.sandbox.warm.zygote import is_pytest, settled

MOST_STARTS = 3
OTHER_DEVICE = "cross-device link"
"""What a program is told that renames a folder of the workspace, where a warm sandbox lays a layer over it. A fresh one
may be able to."""


class Warm(Protocol):
    async def run(self, execution: Execution) -> Completed:
        """Raises `SandboxUnavailable` where it is broken, whatever the execution has done by then."""
        ...


class WarmSession:
    """Runs what can be run warm in what `start` gives for it, and everything else, or again, in `fresh`."""

    def __init__(
        self,
        fresh: Sandbox,
        start: Callable[[Execution], AbstractAsyncContextManager[Warm]],
        environment: Environment,
        limits: SandboxLimits,
    ) -> None:
        self._fresh, self._start = fresh, start
        self._environment, self._limits = environment, limits
        self._turn = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._warm: Warm | None = None
        self._settled: dict[str, str] = {}
        self.starts = 0
        """How often something warm had to be started so far."""
        self.warm_runs = 0
        """How many executions were not run fresh."""

    async def run(self, execution: Execution) -> Completed:
        warm = await self._ready(execution) if self._fits(execution) else None
        try:
            completed = await warm.run(execution) if warm else None
        except SandboxUnavailable:
            await self._discard(warm)
            completed = None
        if completed is None or _needs_fresh(completed):
            return await self._fresh.run(execution)
        self.warm_runs += 1
        return completed

    async def close(self) -> None:
        self._warm = None
        await self._open.aclose()

    def _fits(self, execution: Execution) -> bool:
        environment = execution.environment
        same = environment == self._environment and execution.limits == self._limits
        return same and is_pytest(execution) and not (environment.services or execution.hostname)

    async def _ready(self, execution: Execution) -> Warm | None:
        """What is kept warm, where this execution can be run in it; made where there is nothing yet."""
        async with self._turn:
            if self._warm is None and self.starts < MOST_STARTS:
                self.starts += 1
                self._settled = settled(execution)
                try:
                    self._warm = await self._open.enter_async_context(self._start(execution))
                except SandboxUnavailable:
                    self.starts = MOST_STARTS  # it would fail again
            return self._warm if settled(execution) == self._settled else None

    async def _discard(self, broken: Warm | None) -> None:
        async with self._turn:
            if self._warm is broken:
                await self.close()
                self._open = contextlib.AsyncExitStack()


def _needs_fresh(completed: Completed) -> bool:
    texts = (completed.output, *completed.files.values())
    return completed.exit_code != 0 and any(OTHER_DEVICE in text for text in texts)
