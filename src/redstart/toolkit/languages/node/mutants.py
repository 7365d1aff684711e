"""Small changes to JavaScript and TypeScript, by token. Code that tests need not cover is left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.toolkit.honesty import mutation as words
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.languages.node.trees import find_syntax_errors, get_text, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_NEGATED_OPERATORS = {"===": "!==", "!==": "===", "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_CALCULATION = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "*"}
_LOGIC = {"&&": "||", "||": "&&"}
_FUNCTIONS = frozenset(
    ("function_declaration", "method_definition", "generator_function_declaration", "class_declaration")
)
_LOOPS = frozenset(("while_statement", "do_statement"))
_SKIPPED_TYPES = frozenset(("import_statement", "template_string", "comment", "decorator", "type_annotation", "string"))
_LOGGING_CALL = re.compile(r"^(?:console\.(?:error|warn|debug|info)|logger\.\w+|log\.\w+)$")
_WHOLE_NUMBER = re.compile(r"\d+$")


def create_node_mutants(path: str, text: bytes) -> list[Mutant]:
    """Create all mutants of a file; empty if it does not parse."""
    if find_syntax_errors(path, text):
        return []
    mutants = _walk(path, parse(path, text), (), in_loop=False)
    return [item for item in mutants if not find_syntax_errors(path, item.apply_to(text))]


def _walk(path: str, root: Node, scope: tuple[str, ...], *, in_loop: bool) -> Iterator[Mutant]:
    waiting = [(root, scope, in_loop)]
    while waiting:
        node, scope, in_loop = waiting.pop()
        if node.type in _SKIPPED_TYPES or _is_quiet(node):
            continue
        for start, end, new, kind in _find_changes(node, in_loop=in_loop):
            yield Mutant(path, start, end, new.encode(), node.start_point[0] + 1, kind, ".".join(scope))
        inner_scope = (*scope, name) if (name := _name(node)) else scope
        skipped_ids = _find_skipped_children(node)
        children = [child for child in node.children if child.id not in skipped_ids]
        looping = (in_loop or node.type in _LOOPS) and node.type not in _FUNCTIONS
        waiting.extend((item, inner_scope, looping) for item in reversed(children))


def _is_quiet(node: Node) -> bool:
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    expression = node.named_children[0] if node.type == "expression_statement" and node.named_children else None
    return bool(callee and _LOGGING_CALL.match(get_text(callee))) or (expression is not None and _is_quiet(expression))


def _name(node: Node) -> str:
    name_node = node.child_by_field_name("name")
    if node.type in _FUNCTIONS and name_node is not None:
        return get_text(name_node)
    value = node.child_by_field_name("value")
    is_function = node.type == "variable_declarator" and value is not None and value.type == "arrow_function"
    return get_text(name_node) if is_function and name_node is not None else ""


def _find_skipped_children(node: Node) -> set[int]:
    """Return the IDs of children to skip: parameters with defaults, a loop's own condition, an error's message."""
    fields = ["parameters", *(("condition",) if node.type in (*_LOOPS, "for_statement") else ())]
    fields += ["increment"] if node.type == "for_statement" else []
    if node.type == "throw_statement":
        return {child.id for child in node.children}
    return {field_node.id for name in fields if (field_node := node.child_by_field_name(name)) is not None}


def _find_changes(node: Node, *, in_loop: bool) -> Iterator[tuple[int, int, str, str]]:
    match node.type:
        case "binary_expression":
            yield from _change_operator(node)
        case "number" if _WHOLE_NUMBER.fullmatch(get_text(node)):
            yield node.start_byte, node.end_byte, str(int(get_text(node)) + 1), words.CONSTANT
        case "true" | "false":
            yield node.start_byte, node.end_byte, "false" if node.type == "true" else "true", words.CONSTANT
        case "if_statement" | "ternary_expression":
            if (test := node.child_by_field_name("condition")) is not None:
                yield test.start_byte, test.end_byte, f"(!({get_text(test)}))", words.CONDITION
        case "return_statement" if values := [child for child in node.named_children if child.type != "comment"]:
            if get_text(values[0]) not in ("undefined", "null"):
                yield values[0].start_byte, values[-1].end_byte, "undefined", words.NOTHING_BACK
        case "throw_statement":
            yield node.start_byte, node.end_byte, ";", words.NOT_RAISED
        case "expression_statement" if not in_loop and node.named_children:
            if node.named_children[0].type == "call_expression":
                yield node.start_byte, node.end_byte, ";", words.LEFT_OUT
        case _:
            return


def _change_operator(node: Node) -> Iterator[tuple[int, int, str, str]]:
    operator = node.child_by_field_name("operator")
    if operator is None:
        return
    symbol = get_text(operator)
    operands = [node.child_by_field_name(name) for name in ("left", "right")]
    is_text = any(operand is not None and operand.type in ("string", "template_string") for operand in operands)
    for table, kind in (
        (_NEGATED_OPERATORS, words.NEGATED_COMPARISON),
        (words.MOVED_BORDERS, words.BORDER),
        ({} if is_text else _CALCULATION, words.CALCULATION),
        (_LOGIC, words.LOGIC),
    ):
        if symbol in table:
            yield operator.start_byte, operator.end_byte, table[symbol], kind
    for operand in operands:
        if (
            operand is not None
            and operand.type == "string"
            and symbol in _NEGATED_OPERATORS
            and len(get_text(operand)) > 2
        ):
            yield operand.start_byte, operand.end_byte, '"other"', words.CONSTANT
