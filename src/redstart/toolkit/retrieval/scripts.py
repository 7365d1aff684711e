"""What a script in JavaScript or TypeScript defines, imports and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.languages.node.trees import field_text, is_script, parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFINES = ("function_declaration", "generator_function_declaration", "class_declaration", "method_definition")
_CALLABLE = ("arrow_function", "function_expression")
_NAMES = ("identifier", "property_identifier", "shorthand_property_identifier", "type_identifier")


class ScriptTest(NamedTuple):
    """A test of a script: where it stands, and what it speaks of."""

    start: int
    end: int
    words: tuple[str, ...]
    imports: Mapping[str, str]
    """Names that the file binds, each with what it imports them from."""


def spans_of(path: str, data: bytes) -> list[tuple[int, int]]:
    """The first and last lines of the functions and classes of a script; none for another file."""
    if not is_script(path):
        return []
    return [_lines(_statement(node)) for node in walk(parse(path, data)) if _defines(node)]


def imports_of(path: str, data: bytes) -> tuple[str, ...]:
    """What a script imports or requires, as it names it."""
    return tuple(dict.fromkeys(one for _, one in _imported(parse(path, data)))) if is_script(path) else ()


def read_test(path: str, data: bytes, titles: Sequence[str]) -> ScriptTest | None:
    """The test with these titles, or as much of the file as they lead to; None for what is no script."""
    if not is_script(path) or not data:
        return None
    root = parse(path, data)
    subject = root
    for title in titles:
        inner = next((node for node in walk(subject) if node != subject and _titled(node, title)), None)
        subject = inner or subject
    words = [text_of(node) for node in walk(subject) if node.type in _NAMES]
    bound: dict[str, str] = {}
    for names, specifier in _imported(root):
        bound |= dict.fromkeys(names, specifier)
    start, end = _lines(subject)
    return ScriptTest(start, end, tuple(dict.fromkeys(words)), bound)


def _defines(node: Node) -> bool:
    if node.type in _DEFINES:
        return True
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
    return value is not None and value.type in _CALLABLE


def _statement(node: Node) -> Node:
    """The whole statement of what is defined in one: `export const f = ...`."""
    while node.parent is not None and node.parent.type in ("lexical_declaration", "export_statement"):
        node = node.parent
    return node


def _titled(node: Node, title: str) -> bool:
    """Whether a call is `it('title', ...)`, by whatever name."""
    arguments = node.child_by_field_name("arguments") if node.type == "call_expression" else None
    first = next((one for one in arguments.children if one.is_named), None) if arguments is not None else None
    if first is None or first.type not in ("string", "template_string"):
        return False
    return " ".join(text_of(first)[1:-1].split()) == title


def _imported(root: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    for node in walk(root):
        if node.type in ("import_statement", "export_statement"):
            source = node.child_by_field_name("source")
            if source is not None:
                names = [text_of(one) for one in walk(node) if one.type == "identifier"]
                yield tuple(names), text_of(source)[1:-1]
        elif node.type == "call_expression" and field_text(node, "function") in ("require", "import"):
            given = field_text(node, "arguments").strip("()\n\t ")
            if given[:1] in ("'", '"'):
                yield _bound_by(node), given[1:-1]


def _bound_by(node: Node) -> tuple[str, ...]:
    """The names of `const { a, b: c } = require(...)`."""
    while node.parent is not None and node.parent.type in ("member_expression", "await_expression", "call_expression"):
        node = node.parent
    holder = node.parent
    name = holder.child_by_field_name("name") if holder is not None and holder.type == "variable_declarator" else None
    kinds = ("identifier", "shorthand_property_identifier_pattern")
    return tuple(text_of(one) for one in walk(name) if one.type in kinds) if name is not None else ()


def _lines(node: Node) -> tuple[int, int]:
    return node.start_point[0] + 1, node.end_point[0] + (1 if node.end_point[1] else 0)
