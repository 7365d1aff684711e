"""Locate a test by its ID."""

from __future__ import annotations

from collections.abc import Collection
from posixpath import join
from typing import NamedTuple

_FOLDERS = ("", "tests", "test")
"""The directories where unittest's module paths can start."""


class CaseAddress(NamedTuple):
    """A test's file, relative to the suite's directory, and its name in that file."""

    id: str
    file: str
    names: tuple[str, ...] = ()
    """The classes, the outermost first, and the function; empty if the ID denotes the whole file."""
    parameters: str = ""


def locate_test(test: str, files: Collection[str]) -> CaseAddress:
    """Return the address of a pytest or unittest ID; `files` are those of the suite's directory."""
    file, _, qualified_name = test.partition("::")
    if file.endswith(".py") or qualified_name:
        names, _, parameters = qualified_name.partition("[")
        return CaseAddress(test, file, tuple(names.split("::")) if names else (), parameters.removesuffix("]"))
    parts = test.split(".")
    for end in range(len(parts), 0, -1):
        for path in ("/".join(parts[:end]) + ".py", "/".join((*parts[:end], "__init__.py"))):
            for folder in _FOLDERS:
                if (place := join(folder, path)) in files:
                    return CaseAddress(test, place, tuple(parts[end:]))
    return CaseAddress(test, "")
