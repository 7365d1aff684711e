"""The CPU time of commands, for tests of limits."""

from __future__ import annotations

import resource


def measure_children_cpu() -> float:
    """Return the CPU seconds of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
