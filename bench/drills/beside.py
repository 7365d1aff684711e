"""What goes on beside a drill. It may not break without a word: a drill that nothing disturbs or watches holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def beside(over: threading.Event, *loops: Callable[[], None]) -> Generator[None]:
    """Runs the loops, each in a thread of its own, and at the end says that it is over. Raises what broke in one."""
    with ThreadPoolExecutor(len(loops)) as threads:
        going = [threads.submit(loop) for loop in loops]
        try:
            yield
        finally:
            over.set()
    for item in going:
        item.result()
