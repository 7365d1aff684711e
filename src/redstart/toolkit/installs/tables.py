"""Tables of a manifest, whose form nobody has checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast


def as_table(value: object) -> Mapping[str, object]:
    """The value where it is a table; else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
