"""Runs of no-op steps under a supervisor, and bare Temporal doing the same durable work, on one server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from noop.bare import Insert, into_postgres
from noop.bare_temporal import QUEUES, BareRun, Inserts, Plan
from noop.canned import ACTS, ASKS, TWO_POOLS, Canned, on_database
from redstart.core.run import RunState, Step
from redstart.engines.drive import drive
from redstart.engines.langgraph import langgraph
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.driver import DriveActivity, DriveFunction
from redstart.engines.temporal.orders import DriveOrder, order_of, workflow_id
from redstart.engines.temporal.worker import WorkerOptions, serve
from redstart.flow.loop import StepAdvance
from redstart.ports.sql.engine import Database

AT_ONCE = 4


class Rates(NamedTuple):
    """Steps a second of both, by round; and bytes of history an activity."""

    ours: list[float]
    bare: list[float]
    history: float
    bare_history: float
    activities: int


def segments(steps: Sequence[Step]) -> list[tuple[str, int, int]]:
    """As two pools share the run: one goes on until a step needs the other."""
    found: list[tuple[str, int, int]] = []
    pool, begin = "act", 0
    for at, step in enumerate(steps):
        wanted = "act" if step in ACTS else "think" if step in ASKS else pool
        if wanted != pool:
            found.append((pool, begin, at))
            pool, begin = wanted, at
    return [*found, (pool, begin, len(steps))]


def _go(canned: Canned, database: Database, pool: str) -> DriveFunction:
    adapters = on_database(canned, database)
    mine = replace(adapters, model=None) if pool == "act" else replace(adapters, sandbox=None)

    async def go(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
        own = replace(mine, halting=halting)
        return await drive(own, await own.store.claim(order.run_id), langgraph)

    return go


async def rates(canned: Canned, address: str, url: str, rounds: int) -> Rates:
    """Both in turn, `AT_ONCE` runs at a time; the first round of each is not counted."""
    client = (await FleetClient.connect(address, "default")).client
    parts = segments(canned.steps)
    stop = asyncio.Event()
    ours, bare, numbers = [], [], iter(range(10_000))
    async with AsyncExitStack() as stack:
        with Database.open(url) as database:
            serving: list[asyncio.Task[None]] = []
            for pool in ("think", "act"):
                ready = asyncio.Event()
                post = WorkerOptions((pool,), AT_ONCE)
                drives = DriveActivity(_go(canned, database, pool))
                serving.append(asyncio.create_task(serve(client, drives, post, stop, ready.set)))
                await ready.wait()
            for pool in ("think", "act"):
                executor = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
                await stack.enter_async_context(_bare_worker(client, canned, url, pool, executor))
            for _ in range(rounds + 1):
                ours.append(
                    await _timed(canned, [_ours(client, canned, database, next(numbers)) for _ in range(AT_ONCE)])
                )
                bare.append(await _timed(canned, [_bare(client, parts, next(numbers)) for _ in range(AT_ONCE)]))
            last = next(numbers)
            told = await _history(await _ours(client, canned, database, last))
            bare_told = await _history(await _bare(client, parts, last))
            stop.set()
            await asyncio.gather(*serving)
    return Rates(ours[1:], bare[1:], told / len(parts), bare_told / len(parts), len(parts))


async def _timed(canned: Canned, doing: Sequence[Coroutine[Any, Any, object]]) -> float:
    began = time.perf_counter()
    await asyncio.gather(*doing)
    return len(doing) * len(canned.trail) / (time.perf_counter() - began)


async def _ours(client: Client, canned: Canned, database: Database, number: int) -> WorkflowHandle[Any, Any]:
    began = canned.began(f"run{number}")
    state: RunState = began.model_copy(update={"spec": began.spec.model_copy(update={"repo": TWO_POOLS})})
    await on_database(canned, database).store.create(state, folder="/noop", created=datetime.now(UTC))
    fleet = FleetClient(client)
    await fleet.submit(state)
    report = await fleet.ended(order_of(state))
    assert report.ended, report
    return client.get_workflow_handle(workflow_id(order_of(state)))


async def _bare(client: Client, parts: list[tuple[str, int, int]], number: int) -> WorkflowHandle[Any, Any]:
    name = f"bare{number}"
    handle = await client.start_workflow(BareRun.run, Plan(name, parts), id=name, task_queue=QUEUES["think"])
    assert await handle.result() == len(parts)
    return handle


async def _history(handle: WorkflowHandle[Any, Any]) -> float:
    described = await handle.describe()
    return described.raw_description.workflow_execution_info.history_size_bytes


def _bare_worker(client: Client, canned: Canned, url: str, pool: str, executor: ThreadPoolExecutor) -> Worker:
    own = threading.local()

    def insert(run: str, number: int) -> None:
        if not hasattr(own, "insert"):
            own.insert, _ = into_postgres(url)
        put: Insert = own.insert
        put(run, number, canned.trail[number])

    return Worker(
        client,
        task_queue=QUEUES[pool],
        workflows=[BareRun] if pool == "think" else [],
        activities=[Inserts(insert).rows],
        activity_executor=executor,
        max_concurrent_activities=AT_ONCE,
    )
