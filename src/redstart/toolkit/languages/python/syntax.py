"""Helpers for Python syntax trees that several modules share."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def iter_functions(tree: ast.AST) -> Iterator[Function]:
    """Iterate over every function and method below a node."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def parse_source(text: bytes) -> ast.Module | None:
    """Parse a file; None if this interpreter cannot read it as Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_python(text: bytes) -> bool:
    return parse_source(text) is not None
