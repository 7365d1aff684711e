"""Loops in the background of a drill. They must not fail silently: a drill that nothing disturbs or watches passes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def run_in_background(stop_event: threading.Event, *loops: Callable[[], None]) -> Generator[None]:
    """Run the loops, each in a thread of its own, and set `stop_event` at the end. Raises the error of a loop that
    fails."""
    with ThreadPoolExecutor(len(loops)) as threads:
        futures = [threads.submit(loop) for loop in loops]
        try:
            yield
        finally:
            stop_event.set()
    for item in futures:
        item.result()
