"""The output of an execution while it runs: for showing how far it is, never for a result."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

OutputListener = Callable[[bytes], None]

_listener: ContextVar[OutputListener | None] = ContextVar("output_listener", default=None)


@contextmanager
def listening(listener: OutputListener) -> Generator[None]:
    """Within it, `listener` gets the output of every execution in the moment in which it is read."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def current_listener() -> OutputListener | None:
    """Whoever listens to the execution that begins now."""
    return _listener.get()
