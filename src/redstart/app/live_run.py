"""A run that goes on while its caller does something else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from redstart.app.aside import Aside
from redstart.core.events import Event

T = TypeVar("T")


class Run(Generic[T]):
    """A run that was started. It works in a thread with an event loop of its own; the caller's loop stays free."""

    def __init__(
        self,
        work: Callable[[Callable[[Event], None]], Coroutine[Any, Any, T]],
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.id = ""
        """The run's ID; empty until its first event."""
        self._on_event = on_event
        self._events: list[Event] = []
        self._news = asyncio.Event()
        aside: Aside[T] = Aside(lambda: work(listen))
        listen = aside.relay(self._hear)
        self._task = asyncio.create_task(aside.run())
        self._task.add_done_callback(lambda _: self._news.set())

    async def events(self) -> AsyncIterator[Event]:
        """Every event from the first one on, until the run ends. Leaving the loop early does not stop the run.

        An error of the run is raised by `result()`, not here.
        """
        position = 0
        while True:
            for event in self._events[position:]:
                position += 1
                yield event
            if position == len(self._events):
                if self._task.done():
                    return
                self._news.clear()
                await self._news.wait()

    async def result(self) -> T:
        """Wait for the end. Raises what the run raises; where the waiting task is cancelled, the run is stopped."""
        return await self._task

    def stop(self) -> None:
        """Stop the run at once. `result()` then raises `asyncio.CancelledError`; `redstart.resume(run.id)` continues.

        Does nothing where the run has ended.
        """
        self._task.cancel()

    def _hear(self, event: Event) -> None:
        self.id = self.id or event.run
        self._events.append(event)
        self._news.set()
        if self._on_event is not None:
            self._on_event(event)

    def __repr__(self) -> str:
        state = "running" if not self._task.done() else "stopped" if self._task.cancelled() else "ended"
        return f"<Run {self.id or '(not begun)'} {state}>"
