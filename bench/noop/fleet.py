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

from noop.bare import Insert, open_postgres
from noop.bare_temporal import QUEUES, BareRun, Inserts, Plan
from noop.canned import ACTS, ASKS, TWO_POOLS, Canned, on_database
from redstart.core.run import RunState, Step
from redstart.engines.langgraph import run_langgraph
from redstart.engines.step_driver import drive
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.driver import DriveActivity, DriveFunction
from redstart.engines.temporal.orders import DriveOrder, create_order, make_workflow_id
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


def compute_segments(steps: Sequence[Step]) -> list[tuple[str, int, int]]:
    """As two pools share the run: one goes on until a step needs the other."""
    parts: list[tuple[str, int, int]] = []
    pool, begin = "act", 0
    for index, step in enumerate(steps):
        needed_pool = "act" if step in ACTS else "think" if step in ASKS else pool
        if needed_pool != pool:
            parts.append((pool, begin, index))
            pool, begin = needed_pool, index
    return [*parts, (pool, begin, len(steps))]


def _go(canned: Canned, database: Database, pool: str) -> DriveFunction:
    adapters = on_database(canned, database)
    pool_adapters = replace(adapters, model=None) if pool == "act" else replace(adapters, sandbox=None)

    async def go(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
        run_adapters = replace(pool_adapters, get_halt_reason=get_halt_reason)
        return await drive(run_adapters, await run_adapters.store.claim(order.run_id), run_langgraph)

    return go


async def measure_rates(canned: Canned, address: str, url: str, rounds: int) -> Rates:
    """Both in turn, `AT_ONCE` runs at a time; the first round of each is not counted."""
    client = (await FleetClient.connect(address, "default")).client
    parts = compute_segments(canned.steps)
    stop = asyncio.Event()
    own_rates, bare_rates, numbers = [], [], iter(range(10_000))
    async with AsyncExitStack() as stack:
        with Database.open(url) as database:
            serving: list[asyncio.Task[None]] = []
            for pool in ("think", "act"):
                ready = asyncio.Event()
                post = WorkerOptions((pool,), AT_ONCE)
                drive_activity = DriveActivity(_go(canned, database, pool))
                serving.append(asyncio.create_task(serve(client, drive_activity, post, stop, ready.set)))
                await ready.wait()
            for pool in ("think", "act"):
                executor = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
                await stack.enter_async_context(_create_bare_worker(client, canned, url, pool, executor))
            for _ in range(rounds + 1):
                own_rates.append(
                    await _measure_rate(
                        canned, [_run_supervised(client, canned, database, next(numbers)) for _ in range(AT_ONCE)]
                    )
                )
                bare_rates.append(
                    await _measure_rate(canned, [_run_bare(client, parts, next(numbers)) for _ in range(AT_ONCE)])
                )
            last_number = next(numbers)
            own_history = await _get_history_size(await _run_supervised(client, canned, database, last_number))
            bare_history = await _get_history_size(await _run_bare(client, parts, last_number))
            stop.set()
            await asyncio.gather(*serving)
    return Rates(own_rates[1:], bare_rates[1:], own_history / len(parts), bare_history / len(parts), len(parts))


async def _measure_rate(canned: Canned, doing: Sequence[Coroutine[Any, Any, object]]) -> float:
    began = time.perf_counter()
    await asyncio.gather(*doing)
    return len(doing) * len(canned.trail) / (time.perf_counter() - began)


async def _run_supervised(client: Client, canned: Canned, database: Database, number: int) -> WorkflowHandle[Any, Any]:
    began = canned.create_state(f"run{number}")
    state: RunState = began.model_copy(update={"spec": began.spec.model_copy(update={"repo": TWO_POOLS})})
    await on_database(canned, database).store.create(state, folder="/noop", created=datetime.now(UTC))
    fleet = FleetClient(client)
    await fleet.submit(state)
    report = await fleet.wait_for_end(create_order(state))
    assert report.has_ended, report
    return client.get_workflow_handle(make_workflow_id(create_order(state)))


async def _run_bare(client: Client, parts: list[tuple[str, int, int]], number: int) -> WorkflowHandle[Any, Any]:
    name = f"bare{number}"
    handle = await client.start_workflow(BareRun.run, Plan(name, parts), id=name, task_queue=QUEUES["think"])
    assert await handle.result() == len(parts)
    return handle


async def _get_history_size(handle: WorkflowHandle[Any, Any]) -> float:
    description = await handle.describe()
    return description.raw_description.workflow_execution_info.history_size_bytes


def _create_bare_worker(client: Client, canned: Canned, url: str, pool: str, executor: ThreadPoolExecutor) -> Worker:
    thread_data = threading.local()

    def insert(run: str, number: int) -> None:
        if not hasattr(thread_data, "insert"):
            thread_data.insert, _ = open_postgres(url)
        insert_row: Insert = thread_data.insert
        insert_row(run, number, canned.trail[number])

    return Worker(
        client,
        task_queue=QUEUES[pool],
        workflows=[BareRun] if pool == "think" else [],
        activities=[Inserts(insert).rows],
        activity_executor=executor,
        max_concurrent_activities=AT_ONCE,
    )
