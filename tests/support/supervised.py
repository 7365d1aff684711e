"""Runs under a supervisor on a real server, driven by workers that are threads of this process."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar

from redstart.core.run import RunState, Status
from redstart.core.run_status import HaltReason
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import Adapters, drive
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.driver import DriveActivity, DriveFunction
from redstart.engines.temporal.orders import DriveOrder, DriveReport
from redstart.engines.temporal.worker import WorkerOptions, serve
from redstart.flow.loop import Advance, StepAdvance

SECONDS = 300.0
"""The time limit for any operation here."""
AT_ONCE = 4

T = TypeVar("T")


class Workers:
    """Workers, one per pool, that run inside a `with` block and drive by the pool's `go` function. Exit drains them."""

    def __init__(self, address: str, go: Mapping[str, DriveFunction], *, deployment: str = "", build: str = "") -> None:
        self._address, self._version = address, (deployment, build)
        self._drives = {pool: DriveActivity(item) for pool, item in go.items()}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._stop = asyncio.Event()
        self._serving: list[asyncio.Future[None]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.fleet = self.call(FleetClient.connect(self._address, "default"))
            self.call(self._start_pools())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.call(self._drain())
        finally:
            self._end()

    def call(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the workers' event loop and return its result."""
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(SECONDS)

    async def run_elsewhere(self, doing: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine on the workers' event loop from another event loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(doing, self._loop))

    async def _start_pools(self) -> None:
        for pool, drives in self._drives.items():
            ready = asyncio.Event()
            post = WorkerOptions((pool,), AT_ONCE, *self._version)
            self._serving.append(asyncio.ensure_future(serve(self.fleet.client, drives, post, self._stop, ready.set)))
            await ready.wait()

    async def _drain(self) -> None:
        self._stop.set()
        await asyncio.gather(*self._serving)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def create_drive(adapters: Callable[[DriveOrder], Adapters]) -> DriveFunction:
    """Create a function that drives a run on these adapters, as a worker does."""

    async def go(order: DriveOrder, get_halt_reason: Callable[[], HaltReason]) -> StepAdvance:
        own_adapters = replace(adapters(order), get_halt_reason=get_halt_reason)
        return await drive(own_adapters, await own_adapters.store.claim(order.run_id), run_inline)

    return go


@dataclass
class _Held:
    state: RunState
    advance: Advance
    done: StepAdvance | None = None
    error: BaseException | None = None


class SupervisedEngine:
    """An engine for the contract suite: each call starts a supervisor whose driver calls `advance`.

    Errors and halt reasons of the driver go to the caller, who acts as the fleet; the supervisor lets go.
    """

    def __init__(self, address: str) -> None:
        self._numbers = itertools.count(1)
        self._held: dict[str, _Held] = {}
        self._workers = Workers(address, {"think": self._go, "act": self._go})

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.__exit__(kind, error, trace)

    async def __call__(self, state: RunState, advance: Advance) -> StepAdvance:
        name = f"{state.run_id}-{id(self)}-{next(self._numbers)}"
        held_run = self._held[name] = _Held(state, advance)
        await self._workers.run_elsewhere(self._supervise(state.model_copy(update={"run_id": name})))
        if held_run.error is not None:
            raise held_run.error
        assert held_run.done is not None
        return held_run.done

    async def _supervise(self, state: RunState) -> DriveReport:
        await self._workers.fleet.submit(state)
        return await self._workers.fleet.wait_for_end(DriveOrder(state.spec.tenant, state.run_id))

    async def _go(self, order: DriveOrder, get_halt_reason: Callable[[], HaltReason]) -> StepAdvance:
        held_run = self._held[order.run_id]
        try:
            held_run.done = await run_inline(held_run.state, held_run.advance)
        except Exception as error:
            held_run.error = error  # raised again by `__call__`
            return StepAdvance(held_run.state, HaltReason.let_go)
        return (
            held_run.done
            if held_run.done.state.status is Status.finished
            else held_run.done._replace(halt=HaltReason.let_go)
        )
