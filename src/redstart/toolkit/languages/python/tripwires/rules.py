"""Apply the tripwires for Python."""

from __future__ import annotations

import ast
import doctest
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

from redstart.toolkit.honesty.tripwires.protocol import Change, RuleMark, Tripwires
from redstart.toolkit.languages.python.tripwires import (
    data,
    dynamic_code,
    expected_literals,
    input_branches,
    lookups,
    packed_data,
    support,
)
from redstart.toolkit.languages.python.tripwires.case_inputs import read_tests
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_UNREADABLE = (".pyc", ".pyo", ".so", ".pyd", ".pth", ".egg-link")
_RUNNERS = frozenset(
    ["pytest", "_pytest", "py", "unittest", "nose", "doctest", "pluggy", "mock", "hypothesis", "testtools"]
)
_RUNNERS_NEED = frozenset({"iniconfig", "packaging", "pygments", "exceptiongroup", "tomli", "xdist", "coverage"})
"""Modules that the test runners themselves import."""
_INSTALLED_METADATA = re.compile(r"\.(?:dist|egg)-info/")
_PARSER = doctest.DocTestParser()
_SKIPPED_EXAMPLE = re.compile(r"#\s*doctest:\s*\+(?:SKIP|ELLIPSIS)")


class PythonTripwires(Tripwires):
    def __init__(self, change: Change) -> None:
        self._tests = change.tests
        self._module = cache(_parse_module)
        old = {path: self._module(path, text) for path, text in change.before.items() if text is not None}
        new = {path: self._module(path, text) for path, text in change.after.items() if text is not None}
        self._old = {path: module for path, module in old.items() if module is not None}
        self._new = {path: module for path, module in new.items() if module is not None}
        self._code_before = expected_literals.summarize_modules(self._old.values())
        had = {lookup.key for _, lookup in lookups.find_lookups(self._old.values())}
        self._lookups = [entry for entry in lookups.find_lookups(self._new.values()) if entry[1].key not in had]
        self._data = {
            path: rows
            for path, text in change.after.items()
            if text is not None and text != change.before.get(path) and (rows := data.read_rows(path, text))
        }
        # Reading a large suite takes seconds, so do it only if code could know an answer.
        self._test_literals = read_tests(change.tests if self._can_know_answers() else {})

    def find_marks(self, path: str, text: bytes) -> Iterator[RuleMark]:
        yield from _find_skipped_examples(text)
        module = self._module(path, text)
        if module is not None:
            yield from packed_data.find_marks(module)
            yield from dynamic_code.find_marks(module)
            yield from support.find_marks(module)
            yield from _find_examples(module) if path in self._tests else ()

    def find_answers(self, path: str) -> Iterator[RuleMark]:
        yield from data.find_marks(self._data.get(path, ()), self._test_literals)
        module = self._new.get(path)
        if module is None:
            return
        yield from expected_literals.find_marks(module, self._test_literals, self._code_before)
        rows = tuple(row for rows in self._data.values() for row in rows)
        lookup_marks = (
            lookups.judge_lookup(lookup, self._test_literals, rows) for place, lookup in self._lookups if place == path
        )
        yield from (item for item in lookup_marks if item is not None)
        yield from input_branches.find_marks(module, self._old.get(path), self._test_literals, self._tests)

    def find_faults(self, path: str) -> Iterator[RuleMark]:
        if path.endswith(".py") and path in self._old and path not in self._new:
            yield RuleMark("unreadable", "", 1, "It is no Python that can be read any more.")

    def find_new_file_faults(self, path: str) -> Iterator[RuleMark]:
        if path.endswith(_UNREADABLE) or _INSTALLED_METADATA.search(path):
            yield RuleMark("unreadable", "", 1, "It is loaded by the interpreter and cannot be read as source.")
        parts = PurePosixPath(path.removeprefix("src/")).parts
        top = parts[0].removesuffix(".py")
        is_module = (len(parts) == 1 and path.endswith(".py")) or parts[1:] == ("__init__.py",)
        if is_module and (top in sys.stdlib_module_names or top in _RUNNERS or top in _RUNNERS_NEED):
            yield RuleMark("shadows", "", 1, f"It stands in for the module `{top}` that the tests import.")

    def can_hold_expected_data(self, path: str) -> bool:
        return not path.endswith(".py")

    def _can_know_answers(self) -> bool:
        """Whether there is anything to compare with the tests."""
        if self._lookups or self._data:
            return True
        if any(
            key not in self._code_before.candidates
            for module in self._new.values()
            for key in expected_literals.list_candidates(module)
        ):
            return True
        return any(
            True
            for path, module in self._new.items()
            for _ in input_branches.find_new_guards(module, self._old.get(path))
        )


def _parse_module(path: str, text: bytes) -> ParsedModule | None:
    if not path.endswith((".py", ".pyi", ".pyw")):
        return None
    try:
        return ParsedModule(path, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _find_skipped_examples(text: bytes) -> Iterator[RuleMark]:
    """Yield marks for examples that no longer run."""
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if (match := _SKIPPED_EXAMPLE.search(line)) is not None:
            yield RuleMark("skip", line.strip(), number, f"`{match[0].strip()}` keeps a test from telling.")


def _find_examples(module: ParsedModule) -> Iterator[RuleMark]:
    """Yield marks for docstring examples that are tests: a change that alters one alters a test."""
    for node in module.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for example in _PARSER.get_examples(ast.get_docstring(node) or ""):
                message = f"The example `{example.source.strip()[:40]}` is a test and was changed."
                yield mark("test_changed", node, message, f"{example.source}\0{example.want}")
