"""Marks on nodes of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.node.trees import get_text

if TYPE_CHECKING:
    from tree_sitter import Node


def mark(kind: str, node: Node, message: str, key: str = "") -> RuleMark:
    return RuleMark(kind, key or " ".join(get_text(node).split()), node.start_point[0] + 1, message)
