"""List the names that a Python file defines, and where."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence

from redstart.toolkit.looking.symbols import Symbol


def outline(lines: Sequence[str]) -> list[Symbol] | None:
    """List the names that a file defines; None if the file does not parse."""
    tree = _parsed(lines)
    return list(_of_tree(tree.body, lines)) if tree else None


def _parsed(lines: Sequence[str]) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the project's invalid escapes are not our concern
        try:
            return ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _of_tree(body: Sequence[ast.stmt], lines: Sequence[str], around: str = "") -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            start = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            name = f"{around}{node.name}"
            yield Symbol(name, start, node.end_lineno or node.lineno, lines[node.lineno - 1].strip())
            if isinstance(node, ast.ClassDef):
                yield from _of_tree(node.body, lines, f"{name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    end = node.end_lineno or node.lineno
                    yield Symbol(f"{around}{target.id}", node.lineno, end, lines[node.lineno - 1].strip())
        elif isinstance(node, ast.If | ast.Try):
            yield from _of_tree([*node.body, *node.orelse], lines, around)
