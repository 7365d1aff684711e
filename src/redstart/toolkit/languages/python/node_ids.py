"""Derive pytest's node IDs from its report.

A report names a test by three attributes, none of which is the ID:

    file        where the function was written: another module for a test that a class inherits or a decorator made
    classname   the module's path and the classes, with dots in place of `/` and `::`, without `.py`
    name        the function with its parameters; of a collection error, the dotted module
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redstart.toolkit.suites.reading.junit import TestAddress

PYTEST_BROKE = TestAddress(file="", classname="pytest", name="internal")
_TEST_MODULE = re.compile(r"^test_|_test$")


def pytest_ids(addresses: Sequence[TestAddress]) -> list[str | None]:
    """Build an ID for each address, as pytest prints it. One test's file can resolve the class of another test.

    An internal error of pytest is reported as a test. It can never pass, so it gets no ID.
    """
    modules: dict[str, str] = {}
    for address in addresses:
        if found := _module_of(address):
            modules.setdefault(*found)
    return [None if address == PYTEST_BROKE else _node_id(address, modules) for address in addresses]


def _node_id(address: TestAddress, modules: dict[str, str]) -> str:
    if not address.classname:
        return address.file or address.name
    parts = address.classname.split(".")
    own = _module_of(address)
    known = [own] if own else [(dotted, modules[dotted]) for dotted in _beginnings(parts) if dotted in modules]
    dotted, path = known[0] if known else _guess(parts)
    classes = [part for part in address.classname[len(dotted) :].split(".") if part]
    return "::".join([path, *classes, address.name])


def _module_of(address: TestAddress) -> tuple[str, str] | None:
    """Find the dotted module and its path if the test is defined in the module that it was collected from; else None.

    For a file outside of pytest's root directory, the ID starts at the directory given as an argument: then the dotted
    module is only the end of the dotted file.
    """
    dotted = _dotted(address.file)
    if not dotted:
        return None
    if not address.classname:
        return (dotted, address.file) if address.name == dotted else None
    if address.classname == dotted or address.classname.startswith(dotted + "."):
        return dotted, address.file
    for beginning in _beginnings(address.classname.split(".")):
        if dotted.endswith("." + beginning):
            return beginning, address.file[-len(beginning) - len(_suffix(address.file)) :]
    return None


def _beginnings(parts: Sequence[str]) -> list[str]:
    """List the dotted prefixes, the longest first."""
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _guess(parts: Sequence[str]) -> tuple[str, str]:
    """Guess the module and its path from naming conventions if no test of the report is defined in the module."""
    named = [index for index, part in enumerate(parts) if _TEST_MODULE.search(part)]
    classes = [index for index, part in enumerate(parts) if index and part[:1].isupper()]
    end = named[-1] + 1 if named else (classes or [len(parts)])[0]
    return ".".join(parts[:end]), "/".join(parts[:end]) + ".py"


def _suffix(path: str) -> str:
    return ".py" if path.endswith(".py") else ""


def _dotted(path: str) -> str:
    return path.replace("/", ".").removesuffix(".py")
