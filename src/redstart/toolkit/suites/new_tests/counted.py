"""How many tests a file holds, by its text: one that cannot be imported yet does not say so itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from redstart.core.report import Reproduced
from redstart.toolkit.languages.node.trees import is_script

_SCRIPT_TEST = re.compile(r"^\s*(?:test|it)\(", re.MULTILINE)


def with_count(found: Reproduced, files: Mapping[str, bytes | None]) -> Reproduced:
    """What was reproduced, with how many tests were written for it."""
    if found.trouble:
        return found
    return found.model_copy(update={"written": max(count_tests(files), found.targets.count)})


def count_tests(files: Mapping[str, bytes | None]) -> int:
    """The tests of all these files, each set of parameters that is written out counted as one."""
    return sum(_count(path, (data or b"").decode(errors="replace")) for path, data in files.items())


def _count(path: str, text: str) -> int:
    if is_script(path):
        return len(_SCRIPT_TEST.findall(text))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return 0
    return _in_body(tree.body)


def _in_body(body: list[ast.stmt]) -> int:
    count = 0
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            count += _in_body(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            count += _sets_of_parameters(node)
    return count


def _sets_of_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    product = 1
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute):
            values = decorator.args[1] if len(decorator.args) > 1 else None
            if decorator.func.attr == "parametrize" and isinstance(values, ast.List | ast.Tuple | ast.Set):
                product *= max(len(values.elts), 1)
    return product
