"""Examine newly written Python tests: whether they parse, whether they assert anything, and how many they are."""

from __future__ import annotations

import ast

from redstart.toolkit.languages.python.syntax import Function
from redstart.toolkit.languages.registry import is_test_support


def count_cases(text: str) -> int:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return 0
    return _in_body(tree.body)


def explain_unusable_test(path: str, text: str) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        location = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{path} does not parse: {error.msg if isinstance(error, SyntaxError) else error}{location}"
    if is_test_support(path) or any(_is_assertion(node) for node in ast.walk(tree)):
        return ""
    return f"{path} asserts nothing"


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    return isinstance(node, ast.Attribute) and (node.attr == "raises" or node.attr.startswith("assert"))


def _in_body(body: list[ast.stmt]) -> int:
    count = 0
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            count += _in_body(node.body)
        elif isinstance(node, Function) and node.name.startswith("test"):
            count += _count_parameter_sets(node)
    return count


def _count_parameter_sets(node: Function) -> int:
    product = 1
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute):
            values = decorator.args[1] if len(decorator.args) > 1 else None
            if decorator.func.attr == "parametrize" and isinstance(values, ast.List | ast.Tuple | ast.Set):
                product *= max(len(values.elts), 1)
    return product
