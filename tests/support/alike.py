"""Compares the final states of two runs that must be equal."""

from __future__ import annotations

from typing import Any, cast

DIFFERS = frozenset({"run_id", "run", "id", "seconds", "full", "output", "report", "environment", "forecast"})
"""Fields that always differ: IDs, times, names of blobs that contain times, and the location of the repo."""


def mask_fields(value: Any, *besides: str) -> Any:
    """Mask the fields of a JSON state that differ between any two runs, and the fields in `besides`."""
    if isinstance(value, dict):
        hidden_names, fields = DIFFERS.union(besides), cast("dict[str, Any]", value)
        return {name: "…" if name in hidden_names else mask_fields(field, *besides) for name, field in fields.items()}
    return [mask_fields(item, *besides) for item in cast("list[Any]", value)] if isinstance(value, list) else value
