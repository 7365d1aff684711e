"""Tripwires on what tests stand on though it lies among the source: their helpers, and the data that they expect."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import cast

from redstart.toolkit.honesty.tripwires.marks import Mark, mark
from redstart.toolkit.honesty.tripwires.names import Module

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


def support_marks(path: str, tests: Mapping[str, bytes]) -> Iterator[str]:
    """In a sentence, why a script is part of how the tests are run: a configuration of the tests names it."""
    stem = path.rpartition(".")[0]
    named = rb"""['"\s=](?:<rootDir>/|\./)?""" + re.escape(stem).encode() + rb"""(?:\.[cm]?[jt]sx?)?['"\s]"""
    name = re.compile(named)
    for config, text in tests.items():
        setup = _setups(text) if config.endswith("package.json") else text
        if _is_configuration(config) and name.search(setup):
            yield f"{config} names it as part of how the tests are run."


def _is_configuration(path: str) -> bool:
    return bool(re.search(r"(?:^|/)(?:package\.json|\.mocharc[\w.]*|mocha\.opts|(?:jest|vitest|vite)\.[\w.]+)$", path))


def _setups(text: bytes) -> bytes:
    """Of a package.json, what is about tests: without the program's own entry points."""
    try:
        package: object = json.loads(text)
    except (ValueError, RecursionError):
        return b""
    known = cast("dict[str, object]", package) if isinstance(package, dict) else {}
    return json.dumps([known.get(key) for key in ("scripts", "jest", "mocha", "vitest", "ava", "nyc", "c8")]).encode()
