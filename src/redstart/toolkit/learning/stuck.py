"""Knowing when a run goes in circles."""

from __future__ import annotations

from redstart.core.run import RunState


def repeated(state: RunState) -> int:
    """How many earlier attempts had the same patch as the one at hand; 0 where it has none."""
    patch = state.now.patch
    if patch is None or not patch.fingerprint:
        return 0
    return sum(attempt.fingerprint == patch.fingerprint for attempt in state.history)
