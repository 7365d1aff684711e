"""Read tables of a manifest whose structure has not been validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast


def as_table(value: object) -> Mapping[str, object]:
    """Return the value if it is a table, else an empty table."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_object(value: object) -> Mapping[str, object]:
    """Return the value if it is a table. Raises `ValueError` otherwise."""
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return as_table(cast("object", value))


def list_own_names(project: object) -> Iterator[str]:
    """Yield the project's own name, if it has one."""
    name = as_table(project).get("name")
    if isinstance(name, str) and name:
        yield name
