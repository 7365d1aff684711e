"""Small changes to JavaScript and TypeScript, by token. Code that tests need not cover is left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.toolkit.honesty import mutant as words
from redstart.toolkit.honesty.mutant import Mutant
from redstart.toolkit.languages.node.trees import faults, parse, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_TURNED = {"===": "!==", "!==": "===", "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_CALCULATION = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "*"}
_LOGIC = {"&&": "||", "||": "&&"}
_FUNCTIONS = frozenset(
    ("function_declaration", "method_definition", "generator_function_declaration", "class_declaration")
)
_LOOPS = frozenset(("while_statement", "do_statement"))
_ALONE = frozenset(("import_statement", "template_string", "comment", "decorator", "type_annotation", "string"))
_QUIET = re.compile(r"^(?:console\.(?:error|warn|debug|info)|logger\.\w+|log\.\w+)$")
_WHOLE = re.compile(r"\d+$")


def node_mutants(path: str, text: bytes) -> list[Mutant]:
    """Create all mutants of a file; empty if it does not parse."""
    if faults(path, text):
        return []
    found = _walk(path, parse(path, text), (), in_loop=False)
    return [item for item in found if not faults(path, item.of(text))]


def _walk(path: str, root: Node, where: tuple[str, ...], *, in_loop: bool) -> Iterator[Mutant]:
    waiting = [(root, where, in_loop)]
    while waiting:
        node, where, in_loop = waiting.pop()
        if node.type in _ALONE or _is_quiet(node):
            continue
        for start, end, new, kind in _changes(node, in_loop=in_loop):
            yield Mutant(path, start, end, new.encode(), node.start_point[0] + 1, kind, ".".join(where))
        inner = (*where, name) if (name := _name(node)) else where
        skipped = _unlooked(node)
        below = [child for child in node.children if child.id not in skipped]
        looping = (in_loop or node.type in _LOOPS) and node.type not in _FUNCTIONS
        waiting.extend((item, inner, looping) for item in reversed(below))


def _is_quiet(node: Node) -> bool:
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    inner = node.named_children[0] if node.type == "expression_statement" and node.named_children else None
    return bool(called and _QUIET.match(text_of(called))) or (inner is not None and _is_quiet(inner))


def _name(node: Node) -> str:
    named = node.child_by_field_name("name")
    if node.type in _FUNCTIONS and named is not None:
        return text_of(named)
    value = node.child_by_field_name("value")
    is_function = node.type == "variable_declarator" and value is not None and value.type == "arrow_function"
    return text_of(named) if is_function and named is not None else ""


def _unlooked(node: Node) -> set[int]:
    """Return the IDs of children to skip: parameters with defaults, a loop's own condition, an error's message."""
    fields = ["parameters", *(("condition",) if node.type in (*_LOOPS, "for_statement") else ())]
    fields += ["increment"] if node.type == "for_statement" else []
    if node.type == "throw_statement":
        return {child.id for child in node.children}
    return {one.id for name in fields if (one := node.child_by_field_name(name)) is not None}


def _changes(node: Node, *, in_loop: bool) -> Iterator[tuple[int, int, str, str]]:
    match node.type:
        case "binary_expression":
            yield from _operated(node)
        case "number" if _WHOLE.fullmatch(text_of(node)):
            yield node.start_byte, node.end_byte, str(int(text_of(node)) + 1), words.CONSTANT
        case "true" | "false":
            yield node.start_byte, node.end_byte, "false" if node.type == "true" else "true", words.CONSTANT
        case "if_statement" | "ternary_expression":
            if (test := node.child_by_field_name("condition")) is not None:
                yield test.start_byte, test.end_byte, f"(!({text_of(test)}))", words.CONDITION
        case "return_statement" if given := [child for child in node.named_children if child.type != "comment"]:
            if text_of(given[0]) not in ("undefined", "null"):
                yield given[0].start_byte, given[-1].end_byte, "undefined", words.NOTHING_BACK
        case "throw_statement":
            yield node.start_byte, node.end_byte, ";", words.NOT_RAISED
        case "expression_statement" if not in_loop and node.named_children:
            if node.named_children[0].type == "call_expression":
                yield node.start_byte, node.end_byte, ";", words.LEFT_OUT
        case _:
            return


def _operated(node: Node) -> Iterator[tuple[int, int, str, str]]:
    operator = node.child_by_field_name("operator")
    if operator is None:
        return
    said = text_of(operator)
    sides = [node.child_by_field_name(name) for name in ("left", "right")]
    is_text = any(side is not None and side.type in ("string", "template_string") for side in sides)
    for table, kind in (
        (_TURNED, words.TURNED),
        (words.MOVED_BORDERS, words.BORDER),
        ({} if is_text else _CALCULATION, words.CALCULATION),
        (_LOGIC, words.LOGIC),
    ):
        if said in table:
            yield operator.start_byte, operator.end_byte, table[said], kind
    for side in sides:
        if side is not None and side.type == "string" and said in _TURNED and len(text_of(side)) > 2:
            yield side.start_byte, side.end_byte, '"other"', words.CONSTANT
