"""Where a test lies, by its id."""

from __future__ import annotations

from collections.abc import Collection
from posixpath import join
from typing import NamedTuple

_FOLDERS = ("", "tests", "test")
"""Where unittest's modules begin."""


class CaseAddress(NamedTuple):
    """A test's file, from the suite's folder, and its name within."""

    id: str
    file: str
    names: tuple[str, ...] = ()
    """The classes, the outermost first, and the function; none where the id is that of the whole file."""
    parameters: str = ""


def address_of(test: str, files: Collection[str]) -> CaseAddress:
    """The address of an id that pytest gives, or unittest; `files` are those of the suite's folder."""
    file, _, called = test.partition("::")
    if file.endswith(".py") or called:
        names, _, parameters = called.partition("[")
        return CaseAddress(test, file, tuple(names.split("::")) if names else (), parameters.removesuffix("]"))
    parts = test.split(".")
    for end in range(len(parts), 0, -1):
        for path in ("/".join(parts[:end]) + ".py", "/".join((*parts[:end], "__init__.py"))):
            for folder in _FOLDERS:
                if (place := join(folder, path)) in files:
                    return CaseAddress(test, place, tuple(parts[end:]))
    return CaseAddress(test, "")
