"""Tripwires on what tests stand on though it lies among the source: their helpers, and the data that they expect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from redstart.toolkit.honesty.marks import Mark, mark
from redstart.toolkit.honesty.names import Module

_EXPECTED = re.compile(
    r"expected|golden|fixture|snapshot|baseline|reference|approved|cassette|(?:^|[/_.-])(?:cases|samples?)[/_.-]|\.snap$",
    re.IGNORECASE,
)

_FOR_TESTS = re.compile(r"(?:^|[/_])(?:testing|testutils?|test_utils?|asserts?|assertions)(?:[/_.]|$)")


def marks(module: Module) -> Iterator[Mark]:
    """The helpers by which tests check. Each is a mark as a whole, so that any change of one shows."""
    is_for_tests = bool(_FOR_TESTS.search(module.path))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and any(_is_test_case(base) for base in node.bases):
            for one in node.body:
                if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)):
                    words = (
                        f"`{node.name}` is a test case that tests are built on; checking is not the code's to change."
                    )
                    yield mark("test_support", one, words)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _checks(node, is_for_tests):
            yield mark(
                "test_support", node, f"`{node.name}` is a check that tests use; it is not the code's to change."
            )


def is_expected_data(path: str, tests: Mapping[str, bytes]) -> bool:
    """Whether a file holds what tests expect: by its name, and because a test speaks of it."""
    if path.endswith(".py") or not _EXPECTED.search(path):
        return False
    name = PurePosixPath(path).name.encode()
    return any(name in text for text in tests.values())


def _is_test_case(base: ast.expr) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return name.endswith("TestCase")


def _checks(node: ast.FunctionDef | ast.AsyncFunctionDef, is_for_tests: bool) -> bool:
    if node.name.lstrip("_").startswith("assert"):
        return True
    named = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    return is_for_tests and ("AssertionError" in named or any(isinstance(one, ast.Assert) for one in ast.walk(node)))
