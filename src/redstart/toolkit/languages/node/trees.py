"""JavaScript and TypeScript, read into trees. The one place that knows tree-sitter."""

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
    """The tree of a file, by the language that its name says; what cannot be read is an error node in it.

    Files of types that end in `.ts` and hold JSX are read as what they are not: TypeScript forbids that too.
    """
    return _parser(_language(path)).parse(data[:MAX_BYTES]).root_node


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text, without recursion: code may be nested beyond Python's."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def field_text(node: Node, field: str) -> str:
    """The text of a node's field; empty where it has none of that name."""
    part = node.child_by_field_name(field)
    return text_of(part) if part is not None else ""


def faults(path: str, data: bytes) -> list[int]:
    """The lines, from 1, that cannot be read, the first of each place; none for a file that can be read."""
    root = parse(path, data)
    if not root.has_error:
        return []
    return sorted({item.start_point[0] + 1 for item in walk(root) if item.is_error or item.is_missing})


def _language(path: str) -> str:
    if path.endswith((".ts", ".mts", ".cts")):
        return "typescript"
    return "tsx" if path.endswith(".tsx") else "javascript"


@cache
def _parser(language: str) -> Parser:
    # Loading the grammars takes some time, which only a project in these languages has to spend.
    import tree_sitter_javascript
    import tree_sitter_typescript
    from tree_sitter import Language, Parser

    languages = {
        "javascript": tree_sitter_javascript.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return Parser(Language(languages[language]()))
