"""Marks on nodes of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.node.trees import text_of

if TYPE_CHECKING:
    from tree_sitter import Node


def mark(kind: str, node: Node, words: str, key: str = "") -> RuleMark:
    return RuleMark(kind, key or " ".join(text_of(node).split()), node.start_point[0] + 1, words)
