"""Tripwires on test helpers that are part of the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_FOR_TESTS = re.compile(r"(?:^|[/_])(?:testing|testutils?|test_utils?|asserts?|assertions)(?:[/_.]|$)")


def find_marks(module: ParsedModule) -> Iterator[RuleMark]:
    """Mark the helpers that tests use for checks. Each helper is one mark, so that any change of it shows."""
    is_for_tests = bool(_FOR_TESTS.search(module.path))
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and any(_is_test_case(base) for base in node.bases):
            for statement in node.body:
                if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                    message = (
                        f"`{node.name}` is a test case that tests are built on; checking is not the code's to change."
                    )
                    yield mark("test_support", statement, message)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_check(node, is_for_tests):
            yield mark(
                "test_support", node, f"`{node.name}` is a check that tests use; it is not the code's to change."
            )


def _is_test_case(base: ast.expr) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return name.endswith("TestCase")


def _is_check(node: ast.FunctionDef | ast.AsyncFunctionDef, is_for_tests: bool) -> bool:
    if node.name.lstrip("_").startswith("assert"):
        return True
    names = (item.id for item in ast.walk(node) if isinstance(item, ast.Name))
    return is_for_tests and ("AssertionError" in names or any(isinstance(item, ast.Assert) for item in ast.walk(node)))
