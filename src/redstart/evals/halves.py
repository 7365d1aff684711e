"""Which of a task's tests are shown: part of them, so that a fix which fits only those is found out."""

from __future__ import annotations

import ast
from collections.abc import Sequence


def half_of_asserts(text: str, function: str) -> str:
    """The text with every second plain `assert` of this function left out; as it is where there are fewer than two.

    Raises `SyntaxError` for a text that is no Python.
    """
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            plain = [one for one in node.body if isinstance(one, ast.Assert)]
            return _without(text, plain[1::2])
    return text


def half_of_tests(text: str) -> str:
    """The text with every second test function or method left out; as it is where there are fewer than two.

    Raises `SyntaxError` for a text that is no Python.
    """
    tests: list[ast.stmt] = []
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        tests += [one for one in inside if isinstance(one, ast.FunctionDef) and one.name.startswith("test")]
    return _without(text, tests[1::2])


def half_of_lines(text: str) -> str:
    """Every second line, from the first."""
    return "".join(text.splitlines(keepends=True)[::2])


def _without(text: str, nodes: Sequence[ast.stmt]) -> str:
    gone = {line for node in nodes for line in range(_first_line(node), (node.end_lineno or node.lineno) + 1)}
    # As the parser counts them: a form feed ends no line.
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in gone)


def _first_line(node: ast.stmt) -> int:
    above = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(one.lineno for one in above)])
