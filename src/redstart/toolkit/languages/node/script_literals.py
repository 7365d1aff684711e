"""Literals that a script's test expects: where they are written, and how to replace them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.languages.node.script_file import FUNCTIONS, arguments, unwrapped
from redstart.toolkit.languages.node.trees import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_WHOLE = re.compile(r"(?:0|[1-9][\d_]*)(n?)")
_DECIMAL = re.compile(r"(\d*)(\.\d[\d_]*)?((?:[eE][+-]?\d+)?)")
_BASED = re.compile(r"0[xXoObB][\da-fA-F]+")
_SAFE = 2**53 - 1
_COLLECTIONS = re.compile(r"new (?:Set|Map|Date|\w*Error)\b|Object\.freeze\(|expect\.objectContaining\(")
_BRANCHES = re.compile(rb"\b(?:if|switch|continue|break|return)\b|&&|\|\||\?")
_NAMES = ("identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern")
_SCOPES = frozenset(("statement_block", "program", "switch_case", "switch_default"))


class ScriptEdit(NamedTuple):
    start: int
    end: int
    new: bytes


def expected_literal(node: Node, callback: Node | None) -> ScriptEdit | None:
    """Replace a literal, or the literal that a name or a table's row supplies; None if that is not possible.

    The name must have no other use: another use could honestly hide the change.
    """
    value = unwrapped(node)
    if value.type == "identifier" and text_of(value) not in ("NaN", "Infinity"):
        return _of_name(value, text_of(value), None, callback)
    if value.type == "member_expression":
        owner, field = value.child_by_field_name("object"), value.child_by_field_name("property")
        if owner is not None and field is not None and owner.type == "identifier":
            return _of_name(value, text_of(owner), text_of(field), callback)
        return None
    return changed(value)


def changed(node: Node) -> ScriptEdit | None:
    """Change the first literal in an expression; None if no literal is certain to change its value."""
    node = unwrapped(node)
    match node.type:
        case "string" | "template_string":
            return ScriptEdit(node.end_byte - 1, node.end_byte - 1, b"~")
        case "number":
            new = other_number(text_of(node))
            return ScriptEdit(node.start_byte, node.end_byte, new.encode()) if new else None
        case "true" | "false":
            return ScriptEdit(node.start_byte, node.end_byte, b"false" if node.type == "true" else b"true")
        case "null" | "undefined":
            return ScriptEdit(node.start_byte, node.end_byte, b"0")
        case "array" | "object" if not node.named_children:
            return ScriptEdit(node.start_byte, node.end_byte, b'["~"]' if node.type == "array" else b'{"~": 1}')
        case "array":
            return _first(node.named_children)
        case "object":
            pairs = (part.child_by_field_name("value") for part in node.named_children if part.type == "pair")
            return _first([value for value in pairs if value is not None])
        case "unary_expression":
            inner = node.child_by_field_name("argument")
            return changed(inner) if inner is not None and inner.type == "number" else None
        case "binary_expression" if any(child.type == "+" for child in node.children):
            return _first([side for side in node.named_children if side.type in ("string", "template_string")])
        case "call_expression" | "new_expression" if _COLLECTIONS.match(text_of(node)):
            return _first(arguments(node))
        case _:
            return None


def other_number(text: str) -> str:
    """Return a number one higher; empty if it cannot be written simply."""
    if whole := _WHOLE.fullmatch(text):
        value = int(text.rstrip("n").replace("_", ""))
        return f"{value + 1}{whole[1]}" if whole[1] or value < _SAFE else f"{text}0"
    if _BASED.fullmatch(text):
        return str(int(text, 0) + 1)
    if (decimal := _DECIMAL.fullmatch(text)) and len(decimal[1]) < 15:
        return f"{int(decimal[1] or '0') + 1}{decimal[2] or ''}{decimal[3]}"
    return ""


def _first(nodes: Sequence[Node]) -> ScriptEdit | None:
    return next((edit for node in nodes if (edit := changed(node)) is not None), None)


def _of_name(use: Node, name: str, field: str | None, callback: Node | None) -> ScriptEdit | None:
    """Change the literal behind a name that is declared around `use`; `field` is its property, if any."""
    node: Node | None = use
    while node is not None:
        if node.type in _SCOPES:
            value = _constant(node, name)
            if value is not None:
                return changed(value) if field is None and _is_used_once(node, name, None) else None
        table = _table(node)
        if table is not None and _binds(table.pattern, name):
            every_row = not _is_inside(node, callback) or _BRANCHES.search(node.text or b"") is not None
            return _of_table(table, node, name, field, every_row=every_row)
        if table is None and node.type in FUNCTIONS and _binds(node.child_by_field_name("parameters"), name):
            return None
        node = node.parent
    return None


def _is_inside(node: Node, callback: Node | None) -> bool:
    return callback is not None and callback.start_byte < node.start_byte and node.end_byte <= callback.end_byte


class _Table(NamedTuple):
    pattern: Node
    rows: Node


def _table(node: Node) -> _Table | None:
    """Find the rows that a `for ... of` or a `forEach` iterates over, and the pattern that binds each."""
    if node.type == "for_in_statement":
        pattern, rows = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        is_of = operator is not None and text_of(operator) == "of"
    else:
        call = node.parent.parent if node.type == "arrow_function" and node.parent is not None else None
        called = call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
        is_of = called is not None and text_of(called).endswith(".forEach")
        rows = called.child_by_field_name("object") if called is not None else None
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        is_list = parameters is not None and parameters.type == "formal_parameters"
        pattern = parameters.named_children[0] if parameters and is_list and parameters.named_children else parameters
        pattern = pattern.named_children[0] if pattern and pattern.type == "required_parameter" else pattern
    if not is_of or pattern is None or rows is None:
        return None
    rows = unwrapped(rows)
    if rows.type == "identifier":
        rows = _declared_around(rows)
    return _Table(pattern, rows) if rows is not None and rows.type == "array" else None


def _declared_around(name: Node) -> Node | None:
    scope = name.parent
    while scope is not None:
        if scope.type in _SCOPES and (value := _constant(scope, text_of(name))) is not None:
            return unwrapped(value) if _is_used_once(scope, text_of(name), None) else None
        scope = scope.parent
    return None


def _of_table(table: _Table, loop: Node, name: str, field: str | None, *, every_row: bool) -> ScriptEdit | None:
    """Change a name's cells: in one row if all rows run, in every row if each is a test or may be skipped."""
    if not _is_used_once(loop, name, field):
        return None
    rows = [unwrapped(row) for row in table.rows.named_children if row.type != "comment"]
    cells = [_cell(table.pattern, row, name, field) for row in rows]
    edits = [changed(cell) if cell is not None else None for cell in cells]
    done = [edit for edit in edits if edit is not None]
    if not every_row or not done:
        return done[0] if done else None
    return _joined(done, table.rows) if len(done) == len(rows) else None


def _joined(edits: Sequence[ScriptEdit], around: Node) -> ScriptEdit:
    text, offset = around.text or b"", around.start_byte
    for edit in reversed(edits):
        text = text[: edit.start - offset] + edit.new + text[edit.end - offset :]
    return ScriptEdit(around.start_byte, around.end_byte, text)


def _cell(pattern: Node, row: Node, name: str, field: str | None) -> Node | None:
    if pattern.type == "identifier":
        return _property(row, field) if field is not None else row
    if field is not None:
        return None
    if pattern.type == "object_pattern":
        for part in pattern.named_children:
            key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
            if key is not None and value is not None and text_of(value) == name:
                return _property(row, text_of(key))
            if part.type == "shorthand_property_identifier_pattern" and text_of(part) == name:
                return _property(row, name)
        return None
    index = 0
    for part in pattern.children:
        if part.type == "identifier" and text_of(part) == name:
            cells = [cell for cell in row.named_children if cell.type != "comment"] if row.type == "array" else []
            has_spread = any(cell.type == "spread_element" for cell in cells)
            return cells[index] if index < len(cells) and not has_spread else None
        index += part.type == ","
    return None


def _property(row: Node, name: str | None) -> Node | None:
    for part in row.named_children if row.type == "object" else ():
        key = part.child_by_field_name("key")
        if part.type == "pair" and key is not None and text_of(key).strip("'\"") == name:
            return part.child_by_field_name("value")
    return None


def _constant(scope: Node, name: str) -> Node | None:
    for statement in scope.named_children:
        if statement.type == "lexical_declaration" and text_of(statement).startswith("const"):
            for declarator in statement.named_children:
                declared = declarator.child_by_field_name("name")
                if declared is not None and text_of(declared) == name:
                    return declarator.child_by_field_name("value")
    return None


def _binds(pattern: Node | None, name: str) -> bool:
    return pattern is not None and any(text_of(node) == name for node in _names(pattern))


def _names(node: Node) -> Iterator[Node]:
    return (inner for inner in walk(node) if inner.type in _NAMES)


def _is_used_once(scope: Node, name: str, field: str | None) -> bool:
    """Return whether a name declared in `scope` is used there once, or only its property is used, once."""
    uses = [node for node in _names(scope) if text_of(node) == name]
    if field is None:
        return len(uses) == 2
    owners = [node.parent for node in uses[1:]]
    fields = [owner.child_by_field_name("property") for owner in owners if owner and owner.type == "member_expression"]
    return len(fields) == len(owners) and [text_of(node) for node in fields if node is not None].count(field) == 1
