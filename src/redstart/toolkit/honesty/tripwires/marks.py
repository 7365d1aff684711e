"""What a tripwire notices in one file, in a form that two versions of it can be compared by."""

from __future__ import annotations

import ast
from typing import NamedTuple


class Mark(NamedTuple):
    """Something that a rule noticed. Two marks with the same kind and key are the same thing at another place."""

    kind: str
    key: str
    line: int
    words: str


def mark(kind: str, node: ast.AST, words: str, key: str | None = None) -> Mark:
    return Mark(kind, ast.dump(node) if key is None else key, getattr(node, "lineno", 1), words)
