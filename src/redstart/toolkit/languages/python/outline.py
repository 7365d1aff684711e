"""List the names that a Python file defines, and where."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence

from redstart.toolkit.model_tools.symbols import Symbol


def outline(lines: Sequence[str]) -> list[Symbol] | None:
    """List the names that a file defines; None if the file does not parse."""
    tree = _parse_lines(lines)
    return list(_list_symbols(tree.body, lines)) if tree else None


def _parse_lines(lines: Sequence[str]) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the project's invalid escapes are not our concern
        try:
            return ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _list_symbols(body: Sequence[ast.stmt], lines: Sequence[str], prefix: str = "") -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            start = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            name = f"{prefix}{node.name}"
            yield Symbol(name, start, node.end_lineno or node.lineno, lines[node.lineno - 1].strip())
            if isinstance(node, ast.ClassDef):
                yield from _list_symbols(node.body, lines, f"{name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    end = node.end_lineno or node.lineno
                    yield Symbol(f"{prefix}{target.id}", node.lineno, end, lines[node.lineno - 1].strip())
        elif isinstance(node, ast.If | ast.Try):
            yield from _list_symbols([*node.body, *node.orelse], lines, prefix)
