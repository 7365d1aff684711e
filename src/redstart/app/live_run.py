"""A run that works in the background while its caller does something else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from redstart.core.events import Event

T = TypeVar("T")
Item = TypeVar("Item")


class ThreadLoop(Generic[T]):
    """Runs a coroutine in a thread with an event loop of its own, for a caller whose loop must stay free.

    Store, git and tools block while they work. The store is opened, used and closed in that one thread. The caller
    handles signals: if its task is cancelled (for example by Ctrl-C), the work is cancelled and awaited.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._caller = asyncio.get_running_loop()
        self._task: asyncio.Task[T] | None = None
        self._thread_loop: asyncio.AbstractEventLoop | None = None
        self._is_stopped = False
        self._failure: BaseException | None = None

    async def run(self) -> T:
        """Run the work and return its result. Raises what the work or a relayed call raises."""
        future = asyncio.ensure_future(asyncio.to_thread(asyncio.run, self._run_tracked()))
        try:
            result = await asyncio.shield(future)
        except asyncio.CancelledError:
            self._stop()
            await asyncio.wait([future])
            if self._failure is not None:
                raise self._failure from None
            raise
        if self._failure is not None:
            raise self._failure
        return result

    def relay(self, call: Callable[[Item], None]) -> Callable[[Item], None]:
        """Return a function that makes this call in the caller's loop. If the call raises, the work is stopped."""

        def in_callers_loop(item: Item) -> None:
            if self._failure is None:
                try:
                    call(item)
                except BaseException as error:  # it must not end in the loop's log
                    self._failure = error
                    self._stop()

        def from_thread(item: Item) -> None:
            self._caller.call_soon_threadsafe(in_callers_loop, item)

        return from_thread

    def _stop(self) -> None:
        self._is_stopped = True
        if self._task is not None and self._thread_loop is not None:
            with suppress(RuntimeError):  # the loop is closed, so the work has ended
                self._thread_loop.call_soon_threadsafe(self._task.cancel)

    async def _run_tracked(self) -> T:
        self._thread_loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._is_stopped:
            raise asyncio.CancelledError
        return await self._work()


class Run(Generic[T]):
    """A started run. It works in a thread with an event loop of its own; the caller's loop stays free."""

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
        thread_loop: ThreadLoop[T] = ThreadLoop(lambda: work(listen))
        listen = thread_loop.relay(self._handle_event)
        self._task = asyncio.create_task(thread_loop.run())
        self._task.add_done_callback(lambda _: self._news.set())

    async def events(self) -> AsyncIterator[Event]:
        """Yield every event from the first one until the run ends. Leaving the loop early does not stop the run.

        `result()` raises an error of the run; this method does not.
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
        """Wait for the end. Raises what the run raises. If the waiting task is cancelled, the run is stopped."""
        return await self._task

    def stop(self) -> None:
        """Stop the run at once. `result()` then raises `asyncio.CancelledError`; `redstart.resume(run.id)` continues.

        Does nothing if the run has ended.
        """
        self._task.cancel()

    def _handle_event(self, event: Event) -> None:
        self.id = self.id or event.run
        self._events.append(event)
        self._news.set()
        if self._on_event is not None:
            self._on_event(event)

    def __repr__(self) -> str:
        state = "running" if not self._task.done() else "stopped" if self._task.cancelled() else "ended"
        return f"<Run {self.id or '(not started)'} {state}>"
