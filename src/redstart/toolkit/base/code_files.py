"""Tell which files of a snapshot are code or prose, and read them."""

from __future__ import annotations

from collections.abc import Callable

from redstart.toolkit.languages.registry import is_code

Read = Callable[[str], bytes | None]
"""Returns the bytes of a regular file by its path in the snapshot; None if there is none, for example for a link."""

MAX_BYTES = 400 * 1024
PROSE = (".toml", ".cfg", ".json", ".txt", ".md")
"""Suffixes of files that are searched too, although they seldom contain the bug."""
FOREIGN = frozenset({"node_modules", "site-packages", "venv", "build", "dist", "__pycache__"})
"""Folders of packages and builds, whose contents are not the project's own."""


def is_searchable(path: str) -> bool:
    return is_code(path) or path.endswith(PROSE)


def is_readable(data: bytes) -> bool:
    """Return whether these bytes are text of a size that a person may have written."""
    return len(data) <= MAX_BYTES and b"\0" not in data
