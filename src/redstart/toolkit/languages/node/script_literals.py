"""Literals that a script's test expects: where they are written, and how to replace them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.languages.node.script_file import FUNCTIONS, list_arguments, unwrap_expression
from redstart.toolkit.languages.node.trees import get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_WHOLE_NUMBER = re.compile(r"(?:0|[1-9][\d_]*)(n?)")
_DECIMAL = re.compile(r"(\d*)(\.\d[\d_]*)?((?:[eE][+-]?\d+)?)")
_BASED = re.compile(r"0[xXoObB][\da-fA-F]+")
_MAX_SAFE_INTEGER = 2**53 - 1
_COLLECTIONS = re.compile(r"new (?:Set|Map|Date|\w*Error)\b|Object\.freeze\(|expect\.objectContaining\(")
_BRANCHES = re.compile(rb"\b(?:if|switch|continue|break|return)\b|&&|\|\||\?")
_NAMES = ("identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern")
_SCOPES = frozenset(("statement_block", "program", "switch_case", "switch_default"))


class ScriptEdit(NamedTuple):
    start: int
    end: int
    new: bytes


def change_expected_literal(node: Node, callback: Node | None) -> ScriptEdit | None:
    """Replace a literal, or the literal that a name or a table's row supplies; None if that is not possible.

    The name must have no other use: another use could honestly hide the change.
    """
    value = unwrap_expression(node)
    if value.type == "identifier" and get_text(value) not in ("NaN", "Infinity"):
        return _change_named_literal(value, get_text(value), None, callback)
    if value.type == "member_expression":
        owner, field = value.child_by_field_name("object"), value.child_by_field_name("property")
        if owner is not None and field is not None and owner.type == "identifier":
            return _change_named_literal(value, get_text(owner), get_text(field), callback)
        return None
    return change_literal(value)


def change_literal(node: Node) -> ScriptEdit | None:
    """Change the first literal in an expression; None if no literal is certain to change its value."""
    node = unwrap_expression(node)
    match node.type:
        case "string" | "template_string":
            return ScriptEdit(node.end_byte - 1, node.end_byte - 1, b"~")
        case "number":
            new = increment_number(get_text(node))
            return ScriptEdit(node.start_byte, node.end_byte, new.encode()) if new else None
        case "true" | "false":
            return ScriptEdit(node.start_byte, node.end_byte, b"false" if node.type == "true" else b"true")
        case "null" | "undefined":
            return ScriptEdit(node.start_byte, node.end_byte, b"0")
        case "array" | "object" if not node.named_children:
            return ScriptEdit(node.start_byte, node.end_byte, b'["~"]' if node.type == "array" else b'{"~": 1}')
        case "array":
            return _change_first(node.named_children)
        case "object":
            pairs = (part.child_by_field_name("value") for part in node.named_children if part.type == "pair")
            return _change_first([value for value in pairs if value is not None])
        case "unary_expression":
            argument = node.child_by_field_name("argument")
            return change_literal(argument) if argument is not None and argument.type == "number" else None
        case "binary_expression" if any(child.type == "+" for child in node.children):
            return _change_first(
                [operand for operand in node.named_children if operand.type in ("string", "template_string")]
            )
        case "call_expression" | "new_expression" if _COLLECTIONS.match(get_text(node)):
            return _change_first(list_arguments(node))
        case _:
            return None


def increment_number(text: str) -> str:
    """Return a number one higher; empty if it cannot be written simply."""
    if integer := _WHOLE_NUMBER.fullmatch(text):
        value = int(text.rstrip("n").replace("_", ""))
        return f"{value + 1}{integer[1]}" if integer[1] or value < _MAX_SAFE_INTEGER else f"{text}0"
    if _BASED.fullmatch(text):
        return str(int(text, 0) + 1)
    if (decimal := _DECIMAL.fullmatch(text)) and len(decimal[1]) < 15:
        return f"{int(decimal[1] or '0') + 1}{decimal[2] or ''}{decimal[3]}"
    return ""


def _change_first(nodes: Sequence[Node]) -> ScriptEdit | None:
    return next((edit for node in nodes if (edit := change_literal(node)) is not None), None)


def _change_named_literal(use: Node, name: str, field: str | None, callback: Node | None) -> ScriptEdit | None:
    """Change the literal behind a name that is declared around `use`; `field` is its property, if any."""
    node: Node | None = use
    while node is not None:
        if node.type in _SCOPES:
            value = _find_constant(node, name)
            if value is not None:
                return change_literal(value) if field is None and _is_used_once(node, name, None) else None
        table = _find_table(node)
        if table is not None and _has_binding(table.pattern, name):
            all_rows = not _is_inside(node, callback) or _BRANCHES.search(node.text or b"") is not None
            return _change_table(table, node, name, field, all_rows=all_rows)
        if table is None and node.type in FUNCTIONS and _has_binding(node.child_by_field_name("parameters"), name):
            return None
        node = node.parent
    return None


def _is_inside(node: Node, callback: Node | None) -> bool:
    return callback is not None and callback.start_byte < node.start_byte and node.end_byte <= callback.end_byte


class _Table(NamedTuple):
    pattern: Node
    rows: Node


def _find_table(node: Node) -> _Table | None:
    """Find the rows that a `for ... of` or a `forEach` iterates over, and the pattern that binds each."""
    if node.type == "for_in_statement":
        pattern, rows = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        is_iteration = operator is not None and get_text(operator) == "of"
    else:
        call = node.parent.parent if node.type == "arrow_function" and node.parent is not None else None
        callee = call.child_by_field_name("function") if call is not None and call.type == "call_expression" else None
        is_iteration = callee is not None and get_text(callee).endswith(".forEach")
        rows = callee.child_by_field_name("object") if callee is not None else None
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        is_list = parameters is not None and parameters.type == "formal_parameters"
        pattern = parameters.named_children[0] if parameters and is_list and parameters.named_children else parameters
        pattern = pattern.named_children[0] if pattern and pattern.type == "required_parameter" else pattern
    if not is_iteration or pattern is None or rows is None:
        return None
    rows = unwrap_expression(rows)
    if rows.type == "identifier":
        rows = _find_declaration(rows)
    return _Table(pattern, rows) if rows is not None and rows.type == "array" else None


def _find_declaration(name: Node) -> Node | None:
    scope = name.parent
    while scope is not None:
        if scope.type in _SCOPES and (value := _find_constant(scope, get_text(name))) is not None:
            return unwrap_expression(value) if _is_used_once(scope, get_text(name), None) else None
        scope = scope.parent
    return None


def _change_table(table: _Table, loop: Node, name: str, field: str | None, *, all_rows: bool) -> ScriptEdit | None:
    """Change a name's cells: in one row if all rows run, in every row if each is a test or may be skipped."""
    if not _is_used_once(loop, name, field):
        return None
    rows = [unwrap_expression(row) for row in table.rows.named_children if row.type != "comment"]
    cells = [_find_cell(table.pattern, row, name, field) for row in rows]
    edits = [change_literal(cell) if cell is not None else None for cell in cells]
    possible_edits = [edit for edit in edits if edit is not None]
    if not all_rows or not possible_edits:
        return possible_edits[0] if possible_edits else None
    return _join_edits(possible_edits, table.rows) if len(possible_edits) == len(rows) else None


def _join_edits(edits: Sequence[ScriptEdit], container: Node) -> ScriptEdit:
    text, offset = container.text or b"", container.start_byte
    for edit in reversed(edits):
        text = text[: edit.start - offset] + edit.new + text[edit.end - offset :]
    return ScriptEdit(container.start_byte, container.end_byte, text)


def _find_cell(pattern: Node, row: Node, name: str, field: str | None) -> Node | None:
    if pattern.type == "identifier":
        return _find_property(row, field) if field is not None else row
    if field is not None:
        return None
    if pattern.type == "object_pattern":
        for part in pattern.named_children:
            key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
            if key is not None and value is not None and get_text(value) == name:
                return _find_property(row, get_text(key))
            if part.type == "shorthand_property_identifier_pattern" and get_text(part) == name:
                return _find_property(row, name)
        return None
    index = 0
    for part in pattern.children:
        if part.type == "identifier" and get_text(part) == name:
            cells = [cell for cell in row.named_children if cell.type != "comment"] if row.type == "array" else []
            has_spread = any(cell.type == "spread_element" for cell in cells)
            return cells[index] if index < len(cells) and not has_spread else None
        index += part.type == ","
    return None


def _find_property(row: Node, name: str | None) -> Node | None:
    for part in row.named_children if row.type == "object" else ():
        key = part.child_by_field_name("key")
        if part.type == "pair" and key is not None and get_text(key).strip("'\"") == name:
            return part.child_by_field_name("value")
    return None


def _find_constant(scope: Node, name: str) -> Node | None:
    for statement in scope.named_children:
        if statement.type == "lexical_declaration" and get_text(statement).startswith("const"):
            for declarator in statement.named_children:
                name_node = declarator.child_by_field_name("name")
                if name_node is not None and get_text(name_node) == name:
                    return declarator.child_by_field_name("value")
    return None


def _has_binding(pattern: Node | None, name: str) -> bool:
    return pattern is not None and any(get_text(node) == name for node in _iter_names(pattern))


def _iter_names(node: Node) -> Iterator[Node]:
    return (child for child in walk(node) if child.type in _NAMES)


def _is_used_once(scope: Node, name: str, field: str | None) -> bool:
    """Return whether a name declared in `scope` is used there once, or only its property is used, once."""
    uses = [node for node in _iter_names(scope) if get_text(node) == name]
    if field is None:
        return len(uses) == 2
    owners = [node.parent for node in uses[1:]]
    fields = [owner.child_by_field_name("property") for owner in owners if owner and owner.type == "member_expression"]
    return len(fields) == len(owners) and [get_text(node) for node in fields if node is not None].count(field) == 1
