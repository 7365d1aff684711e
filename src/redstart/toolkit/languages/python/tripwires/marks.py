"""Mark a node of a Python file."""

from __future__ import annotations

import ast

from redstart.toolkit.honesty.tripwires.protocol import RuleMark


def mark(kind: str, node: ast.AST, message: str, key: str | None = None) -> RuleMark:
    return RuleMark(kind, ast.dump(node) if key is None else key, getattr(node, "lineno", 1), message)
