"""Syntax trees of JavaScript and TypeScript. The only module that uses tree-sitter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

SUFFIXES = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
MAX_BYTES = 1 << 20


def is_script(path: str) -> bool:
    return path.endswith(SUFFIXES)


def parse(path: str, data: bytes) -> Node:
    """Parse a file in the language of its suffix; text that does not parse becomes an error node.

    A `.ts` file that contains JSX is misread: TypeScript forbids it too.
    """
    return _create_parser(_detect_language(path)).parse(data[:MAX_BYTES]).root_node


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it in text order, without recursion: code may nest beyond Python's limit."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def get_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def get_field_text(node: Node, field: str) -> str:
    """Return the text of a node's field; empty if it has no field of that name."""
    part = node.child_by_field_name(field)
    return get_text(part) if part is not None else ""


def find_syntax_errors(path: str, data: bytes) -> list[int]:
    """Return the lines, from 1, where syntax errors start; empty for a file that parses."""
    root = parse(path, data)
    if not root.has_error:
        return []
    return sorted({item.start_point[0] + 1 for item in walk(root) if item.is_error or item.is_missing})


def _detect_language(path: str) -> str:
    if path.endswith((".ts", ".mts", ".cts")):
        return "typescript"
    return "tsx" if path.endswith(".tsx") else "javascript"


@cache
def _create_parser(language: str) -> Parser:
    # Loading the grammars is slow: only a project in these languages pays for it.
    import tree_sitter_javascript
    import tree_sitter_typescript
    from tree_sitter import Language, Parser

    languages = {
        "javascript": tree_sitter_javascript.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return Parser(Language(languages[language]()))
