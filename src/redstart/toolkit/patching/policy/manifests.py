"""A change of what a project says of itself that says nothing of its tests: its packages, its description."""

from __future__ import annotations

import json
import tomllib
from typing import cast

_OF_THE_PROJECT = ("dependencies", "optional-dependencies", "description", "scripts", "keywords", "urls", "authors")
_OF_THE_PACKAGE = ("dependencies", "description", "bin", "keywords", "author", "files", "homepage")
LARGEST = 1 << 20


def is_about_packages(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether a changed `pyproject.toml` or `package.json` differs only in packages and in words about the project.

    What says how tests are found and run, or how the project is built, must be the same; a file that is new, gone or
    cannot be read is no such change.
    """
    if before is None or after is None or len(after) > LARGEST:
        return False
    name = path.rpartition("/")[2]
    try:
        if name == "pyproject.toml":
            old, new = (tomllib.loads(text.decode()) for text in (before, after))
            return _without(old, "project", _OF_THE_PROJECT) == _without(new, "project", _OF_THE_PROJECT)
        if name == "package.json":
            both = [json.loads(text) for text in (before, after)]
            if all(isinstance(one, dict) for one in both):
                old, new = (_less(cast("dict[str, object]", one), _OF_THE_PACKAGE) for one in both)
                return old == new
    except (ValueError, RecursionError):
        return False
    return False


def _without(table: dict[str, object], section: str, names: tuple[str, ...]) -> dict[str, object]:
    inner = table.get(section)
    if not isinstance(inner, dict):
        return table
    return {**table, section: _less(cast("dict[str, object]", inner), names)}


def _less(table: dict[str, object], names: tuple[str, ...]) -> dict[str, object]:
    return {name: value for name, value in table.items() if name not in names}
