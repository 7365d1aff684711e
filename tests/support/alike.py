"""Comparing the states of two runs that are to have ended the same."""

from __future__ import annotations

from typing import Any, cast

DIFFERS = frozenset({"run_id", "run", "id", "seconds", "full", "output", "report", "environment", "forecast"})
"""What no two runs share: ids, times, the names of blobs that hold times, and where the repo lies."""


def masked(value: Any, *besides: str) -> Any:
    """A state as JSON has it, without what differs between any two runs, and without the fields named `besides`."""
    if isinstance(value, dict):
        hidden, fields = DIFFERS.union(besides), cast("dict[str, Any]", value)
        return {name: "…" if name in hidden else masked(field, *besides) for name, field in fields.items()}
    return [masked(item, *besides) for item in cast("list[Any]", value)] if isinstance(value, list) else value
