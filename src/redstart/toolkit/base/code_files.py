"""Which files of a snapshot are code or prose, and how they are read."""

from __future__ import annotations

from collections.abc import Callable

from redstart.toolkit.languages.registry import is_code

Read = Callable[[str], bytes | None]
"""A regular file's bytes by its path in the snapshot; None where there is none, a link among others."""

MAX_BYTES = 400 * 1024
PROSE = (".toml", ".cfg", ".json", ".txt", ".md")
"""Looked at too, but they seldom hold the fault."""
FOREIGN = frozenset({"node_modules", "site-packages", "venv", "build", "dist", "__pycache__"})
"""Folders of packages and builds: what lies in them is not the project's own."""


def is_searchable(path: str) -> bool:
    return is_code(path) or path.endswith(PROSE)


def is_readable(data: bytes) -> bool:
    """Whether these bytes are text of a size that a person would have written."""
    return len(data) <= MAX_BYTES and b"\0" not in data
