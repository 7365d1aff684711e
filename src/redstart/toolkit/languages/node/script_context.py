"""The context of a statement in a script: whether it always runs with its test, and whether it can fail the test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.languages.node.script_asserts import is_assertion
from redstart.toolkit.languages.node.script_file import FUNCTIONS, ScriptFile, list_arguments, unwrap_expression
from redstart.toolkit.languages.node.trees import get_text

if TYPE_CHECKING:
    from tree_sitter import Node

_BLOCKS = frozenset(("program", "statement_block", "switch_case", "switch_default"))
_DECLARATIONS = frozenset(("lexical_declaration", "variable_declaration"))
_BODIES = ("body", "consequence")
_LOOPS = frozenset(("for_statement", "for_in_statement", "while_statement", "do_statement"))
_BRANCHES = frozenset(("if_statement", "ternary_expression", "switch_case", "switch_default", "catch_clause"))
_COMPOUND = _LOOPS | {"if_statement", "switch_statement", "try_statement", "labeled_statement"}
_EXPECTS_ERROR = re.compile(r"(?:^|\.)(?:throws|throwsAsync|doesNotThrow|rejects|doesNotReject|expect(?:\.soft)?)$")
_SKIPS = re.compile(r"\.skip\(")
_ONLY_FAILS = re.compile(
    r"(?:await\s+|return\s+)?(?:throw\b|[\w.]*\b(?:fail|unreachable)\(|done\(\s*new\b"
    r"|(?:[\w.]*\bassert(?:\.strict)?(?:\.ok)?|ok)\(\s*(?:false|0|!1|null|undefined)\s*[,)]"
    r"|expect\(\s*(?:true\s*\)\.toBe(?:Falsy\(|\(\s*false)|false\s*\)\.toBe(?:Truthy\(|\(\s*true)))"
)


class StatementContext(NamedTuple):
    is_own_frame: bool
    """Whether it runs in the test's own frame, not in a function that other code calls."""
    conditional: bool
    guarded: Node | None
    """What hides its failure from the runner: a `try` with a `catch`, or a call that expects an error."""


def is_unit(node: Node) -> bool:
    """Return whether this is a whole statement, or the expression that an arrow function returns."""
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "arrow_function":
        return node == parent.child_by_field_name("body") and node.type != "statement_block"
    if not node.type.endswith("_statement") and node.type not in _DECLARATIONS:
        return False
    in_body = any(node == parent.child_by_field_name(field) for field in _BODIES)
    return parent.type in _BLOCKS or parent.type == "else_clause" or in_body


def find_enclosing_statement(node: Node) -> Node:
    """Return the statement that a node belongs to."""
    unit = node
    while not is_unit(unit) and unit.parent is not None:
        unit = unit.parent
    return unit


def can_only_fail(unit: Node) -> bool:
    return _ONLY_FAILS.match(get_text(unit)) is not None


def describe_context(node: Node, callback: Node | None) -> StatementContext:
    """Describe a node's context in the function of its test, or in the file if `callback` is None."""
    is_own, conditional = True, False
    guarded: Node | None = None
    while node.parent is not None and node != callback:
        parent = node.parent
        if node.type in FUNCTIONS:
            is_own = is_own and _is_called_immediately(node)
            guarded = guarded or _find_expecting_call(node)
        if parent.type == "try_statement" and node == parent.child_by_field_name("body"):
            guarded = guarded or (parent if parent.child_by_field_name("handler") is not None else None)
        conditional = conditional or _is_conditional(node, parent) or _can_exit_before(node, parent)
        node = parent
    return StatementContext(is_own and (callback is None or node == callback), conditional, guarded)


def find_statement_at(file: ScriptFile, line: int) -> Node | None:
    """Find the statement that runs at a line: the innermost one that asserts, if any does.

    A statement whose failure does not show is replaced by its guard. A statement that defines tests does not count.
    """
    starts = [test.call.start_byte for test in file.tests]
    units = [
        node
        for node in _find_covering_nodes(file.root, line)
        if is_unit(node) and not any(node.start_byte <= start < node.end_byte for start in starts)
    ]
    simple = [unit for unit in units if unit.type not in _COMPOUND] or [
        unit for unit in units if unit.start_point[0] + 1 == line
    ]
    asserting = [unit for unit in simple if any(is_assertion(node, file) for node in _walk_own_nodes(unit))]
    shortest = min((_measure_lines(unit) for unit in asserting or simple), default=0)
    candidates = [unit for unit in asserting or simple if _measure_lines(unit) == shortest]
    if not candidates:
        return None
    unit = candidates[-1] if asserting else candidates[0]
    while (guard := describe_context(unit, None).guarded) is not None:
        unit = find_enclosing_statement(guard)
    return unit


def is_literal_table(node: Node | None) -> bool:
    """Return whether this is a literal list in the test, which no patch can empty."""
    value = unwrap_expression(node) if node is not None else None
    args = list_arguments(value) if value is not None and value.type == "call_expression" else []
    if args and value is not None and get_text(value).startswith("Object.entries("):
        value = unwrap_expression(args[0])
    return value is not None and value.type in ("array", "object") and bool(value.named_children)


def _walk_own_nodes(unit: Node) -> Iterator[Node]:
    """Yield the nodes of a statement, except those inside functions."""
    waiting = [unit]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in node.named_children if node == unit or node.type not in FUNCTIONS)


def _find_covering_nodes(root: Node, line: int) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.start_point[0] < line <= node.end_point[0] + 1:
            yield node
            waiting.extend(reversed(node.named_children))


def _measure_lines(unit: Node) -> int:
    return unit.end_point[0] - unit.start_point[0]


def _is_called_immediately(function: Node) -> bool:
    """Return whether a function is called where it is defined, so that its failure shows there."""
    parent = function.parent
    is_async = any(child.type == "async" for child in function.children)
    if parent is not None and parent.type == "arguments":
        call = parent.parent
        callee = call.child_by_field_name("function") if call is not None else None
        if call is None or callee is None:
            return False
        if get_text(callee) == "await":
            # The grammar parses `await (async () => { ... })()` as a call of a function named `await`.
            return call.parent is not None and call == call.parent.child_by_field_name("function")
        collection = callee.child_by_field_name("object")
        return not is_async and get_text(callee).endswith(".forEach") and is_literal_table(collection)
    call = parent.parent if parent is not None and parent.type == "parenthesized_expression" else None
    if call is None or call.type != "call_expression" or call.child_by_field_name("function") != parent:
        return False
    return not is_async or (call.parent is not None and call.parent.type == "await_expression")


def _find_expecting_call(function: Node) -> Node | None:
    parent = function.parent
    call = parent.parent if parent is not None and parent.type == "arguments" else None
    callee = call.child_by_field_name("function") if call is not None else None
    return call if callee is not None and _EXPECTS_ERROR.search(get_text(callee)) else None


def _is_conditional(node: Node, parent: Node) -> bool:
    if parent.type == "for_in_statement" and is_literal_table(parent.child_by_field_name("right")):
        return False
    if parent.type in _LOOPS:
        return node == parent.child_by_field_name("body")
    if parent.type == "binary_expression":
        operator = parent.child_by_field_name("operator")
        is_logic = operator is not None and operator.type in ("&&", "||", "??")
        return is_logic and node == parent.child_by_field_name("right")
    return parent.type in _BRANCHES and node != parent.child_by_field_name("condition")


def _can_exit_before(node: Node, parent: Node) -> bool:
    """Return whether an earlier statement in the block may leave the block."""
    if parent.type not in _BLOCKS or parent.type == "program":
        return False
    previous_statements = [child for child in parent.named_children if child.end_byte <= node.start_byte]
    return any(_can_exit_block(child) for child in previous_statements)


def _can_exit_block(statement: Node) -> bool:
    waiting = [(statement, False)]
    while waiting:
        node, in_loop = waiting.pop()
        if node.type == "return_statement" or (node.type in ("break_statement", "continue_statement") and not in_loop):
            return True
        if node.type == "call_expression" and _SKIPS.search(get_text(node)) and not get_text(node).startswith("expect"):
            return True
        child_in_loop = in_loop or node.type in _LOOPS or node.type == "switch_statement"
        waiting.extend((child, child_in_loop) for child in node.named_children if child.type not in FUNCTIONS)
    return False
