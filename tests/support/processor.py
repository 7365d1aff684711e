"""The CPU time of commands, for tests of limits."""

from __future__ import annotations

import resource


def spent_by_children() -> float:
    """Return the CPU seconds of all finished child processes."""
    so_far = resource.getrusage(resource.RUSAGE_CHILDREN)
    return so_far.ru_utime + so_far.ru_stime
