"""Await several coroutines at the same time, or one until a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def run_together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all of it at the same time. If something fails, cancel the rest and raise its error."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(item) for item in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def finish_by(end_time: float | None, work: Awaitable[T]) -> T | None:
    """Return the result of the work; None if it is not finished at that time of the event loop."""
    try:
        async with asyncio.timeout_at(end_time):
            return await work
    except TimeoutError:
        return None
