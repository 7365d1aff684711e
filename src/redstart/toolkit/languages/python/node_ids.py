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
        if module := _find_module(address):
            modules.setdefault(*module)
    return [None if address == PYTEST_BROKE else _build_node_id(address, modules) for address in addresses]


def _build_node_id(address: TestAddress, modules: dict[str, str]) -> str:
    if not address.classname:
        return address.file or address.name
    parts = address.classname.split(".")
    own_module = _find_module(address)
    candidates = (
        [own_module]
        if own_module
        else [(module_name, modules[module_name]) for module_name in _list_prefixes(parts) if module_name in modules]
    )
    module_name, path = candidates[0] if candidates else _guess(parts)
    classes = [part for part in address.classname[len(module_name) :].split(".") if part]
    return "::".join([path, *classes, address.name])


def _find_module(address: TestAddress) -> tuple[str, str] | None:
    """Find the dotted module and its path if the test is defined in the module that it was collected from; else None.

    For a file outside of pytest's root directory, the ID starts at the directory given as an argument: then the dotted
    module is only the end of the dotted file.
    """
    module_name = _get_module_name(address.file)
    if not module_name:
        return None
    if not address.classname:
        return (module_name, address.file) if address.name == module_name else None
    if address.classname == module_name or address.classname.startswith(module_name + "."):
        return module_name, address.file
    for prefix in _list_prefixes(address.classname.split(".")):
        if module_name.endswith("." + prefix):
            return prefix, address.file[-len(prefix) - len(_get_suffix(address.file)) :]
    return None


def _list_prefixes(parts: Sequence[str]) -> list[str]:
    """List the dotted prefixes, the longest first."""
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _guess(parts: Sequence[str]) -> tuple[str, str]:
    """Guess the module and its path from naming conventions if no test of the report is defined in the module."""
    test_indexes = [index for index, part in enumerate(parts) if _TEST_MODULE.search(part)]
    classes = [index for index, part in enumerate(parts) if index and part[:1].isupper()]
    end = test_indexes[-1] + 1 if test_indexes else (classes or [len(parts)])[0]
    return ".".join(parts[:end]), "/".join(parts[:end]) + ".py"


def _get_suffix(path: str) -> str:
    return ".py" if path.endswith(".py") else ""


def _get_module_name(path: str) -> str:
    return path.replace("/", ".").removesuffix(".py")
