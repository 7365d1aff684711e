"""A worker: takes orders from the queues of its privileges until it is told to drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import NamedTuple

from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Worker, WorkerDeploymentConfig

from redstart.engines.temporal.driver import BEAT, DriveActivity
from redstart.engines.temporal.orders import QUEUES
from redstart.engines.temporal.supervisor import RunSupervisor

DRAIN_TIMEOUT = timedelta(minutes=30)
"""How long a draining worker waits for its current steps."""


class WorkerOptions(NamedTuple):
    """The pools that a worker serves, and its version."""

    pools: Sequence[str]
    """`think`, `act` or both."""
    at_once: int
    """Runs that each pool drives at a time."""
    deployment: str = ""
    """Empty if the worker takes runs that any version began."""
    build: str = ""


async def serve(
    client: Client, drive_activity: DriveActivity, post: WorkerOptions, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Serve until `stop` is set; then every drive ends after its current step.

    `ready` is called when the worker takes orders. A worker with a deployment gets no orders until its build is made
    the current one on the server. Workers that may think also serve the supervisors.
    """
    async with AsyncExitStack() as stack:
        workers: list[Worker] = []
        for pool in post.pools:
            executor = stack.enter_context(ThreadPoolExecutor(post.at_once, thread_name_prefix=f"drive-{pool}"))
            workers.append(
                await stack.enter_async_context(_create_worker(client, drive_activity, post, pool, executor))
            )
        ready()
        await stop.wait()
        drive_activity.drain()
        # All at once: while one pool ends its steps, the other must not take new ones.
        await asyncio.gather(*(worker.shutdown() for worker in workers))


def _create_worker(
    client: Client, drive_activity: DriveActivity, post: WorkerOptions, pool: str, executor: ThreadPoolExecutor
) -> Worker:
    versioned = WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(post.deployment, post.build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
    )
    return Worker(
        client,
        task_queue=QUEUES[pool],
        workflows=[RunSupervisor] if pool == "think" else [],
        activities=[drive_activity.drive],
        activity_executor=executor,
        max_concurrent_activities=post.at_once,
        graceful_shutdown_timeout=DRAIN_TIMEOUT,
        # Heartbeats are sent at once: by default the library delays them for most of the server's timeout.
        max_heartbeat_throttle_interval=timedelta(seconds=BEAT),
        default_heartbeat_throttle_interval=timedelta(seconds=BEAT),
        deployment_config=versioned if post.deployment else None,
    )
