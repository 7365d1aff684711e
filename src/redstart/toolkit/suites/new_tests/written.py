"""Tests that were just written: whether they can be read, and assert anything."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from redstart.toolkit.languages.node.trees import faults, is_script, text_of, walk
from redstart.toolkit.languages.node.trees import parse as parse_script

if TYPE_CHECKING:
    from tree_sitter import Node

SUPPORT = ("conftest.py", "__init__.py")
"""Files of tests that hold none."""
_ASSERTING = ("assert", "expect")
_NEXT = re.compile(r"^(?=(?:async )?def test_|@pytest\.|(?:test|it)\()", re.MULTILINE)


def said_in_full(answer: str) -> str:
    """Of an answer that was cut off inside one fenced file of tests: that file with the tests before the last.

    Tests stand side by side, so that those which were said to their end mean what they would have meant. The answer
    itself where that is not how it was cut.
    """
    *_, last = [0, *(found.start() for found in _NEXT.finditer(answer))]
    if answer.count("```") != 1 or not last:
        return answer
    return f"{answer[:last].rstrip()}\n```\n"


def why_no_test(path: str, text: str) -> str:
    """Why this file is no test to start from, in words; empty where it is."""
    return _why_no_script(path, text) if is_script(path) else _why_no_python(path, text)


def _why_no_python(path: str, text: str) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{path} does not parse: {error.msg if isinstance(error, SyntaxError) else error}{where}"
    if PurePosixPath(path).name in SUPPORT or any(_asserts(node) for node in ast.walk(tree)):
        return ""
    return f"{path} asserts nothing"


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    return isinstance(node, ast.Attribute) and (node.attr == "raises" or node.attr.startswith("assert"))


def _why_no_script(path: str, text: str) -> str:
    data = text.encode()
    if broken := faults(path, data):
        return f"{path} does not parse (line {broken[0]})"
    calls = (node for node in walk(parse_script(path, data)) if node.type == "call_expression")
    return "" if any(_is_assertion(call) for call in calls) else f"{path} asserts nothing"


def _is_assertion(call: Node) -> bool:
    """A call of `assert`, of one of its methods, of `t.assert.equal` or of `expect`."""
    called = call.child_by_field_name("function")
    return called is not None and any(one in _ASSERTING for one in text_of(called).split("."))
