"""What commands cost, for tests of bounds."""

from __future__ import annotations

import resource


def spent_by_children() -> float:
    """Seconds of a processor, by all that this process has started and that has ended."""
    so_far = resource.getrusage(resource.RUSAGE_CHILDREN)
    return so_far.ru_utime + so_far.ru_stime
