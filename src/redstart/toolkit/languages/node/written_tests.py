"""Checks of newly written test scripts: whether they parse and assert anything, and how many cases they have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from redstart.toolkit.languages.node.trees import find_syntax_errors, get_text, parse, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_ASSERTING = ("assert", "expect")
_TEST = re.compile(r"^\s*(?:test|it)\(", re.MULTILINE)


def count_cases(text: str) -> int:
    return len(_TEST.findall(text))


def explain_invalid_test(path: str, text: str) -> str:
    data = text.encode()
    if error_lines := find_syntax_errors(path, data):
        return f"{path} does not parse (line {error_lines[0]})"
    calls = (node for node in walk(parse(path, data)) if node.type == "call_expression")
    return "" if any(_is_assertion(call) for call in calls) else f"{path} asserts nothing"


def _is_assertion(call: Node) -> bool:
    """Return whether a call uses `assert`, one of its methods, `t.assert.equal` or `expect`."""
    callee = call.child_by_field_name("function")
    return callee is not None and any(part in _ASSERTING for part in get_text(callee).split("."))
