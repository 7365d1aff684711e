"""The assertions of scripts: node's and chai's `assert`, the `expect` of Jest, Vitest and chai, and `should`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.honesty.controls.alteration import AlterationKind
from redstart.toolkit.languages.node.script_file import ScriptFile, list_arguments, unwrap_expression
from redstart.toolkit.languages.node.script_literals import (
    ScriptEdit,
    change_expected_literal,
    change_literal,
    increment_number,
)
from redstart.toolkit.languages.node.trees import get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_MODULES = frozenset(("assert", "node:assert", "assert/strict", "node:assert/strict", "chai", "node:test"))
_ASSERT = re.compile(r"(?:^|\.)assert(?:\.strict)?$")
_ROOTS = frozenset(("", "default", "strict", "assert"))
_PAIRS = (
    ("equal", "notEqual"),
    ("strictEqual", "notStrictEqual"),
    ("deepEqual", "notDeepEqual"),
    ("deepStrictEqual", "notDeepStrictEqual"),
    ("throws", "doesNotThrow"),
    ("rejects", "doesNotReject"),
    ("match", "doesNotMatch"),
)
_CHAI_PAIRS = (
    ("match", "notMatch"),
    ("isTrue", "isNotTrue"),
    ("isFalse", "isNotFalse"),
    ("isNull", "isNotNull"),
    ("isUndefined", "isDefined"),
    ("isOk", "isNotOk"),
    ("include", "notInclude"),
    ("lengthOf", ""),
)
_OPPOSITES = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
_CHAI_TURNED = {**_OPPOSITES, **dict(_CHAI_PAIRS), **{second: first for first, second in _CHAI_PAIRS if second}}
_EQUALITIES = frozenset(("equal", "strictEqual", "deepEqual", "deepStrictEqual", "lengthOf"))
_TRUTHS = frozenset(("", "ok", "assert", "isOk", "strict", "default"))
_AWAITED = frozenset(("rejects", "doesNotReject"))

_MATCHER = re.compile(r"to[A-Z]")
_JEST_EQUAL = frozenset(
    (
        *("toBe", "toEqual", "toStrictEqual", "toMatchObject", "toHaveLength", "toMatchInlineSnapshot"),
        *("toHaveBeenCalledTimes", "toHaveBeenLastCalledWith"),
    )
)
_JEST_OTHER = frozenset(("toContain", "toContainEqual", "toMatch", "toBeCloseTo", "toHaveBeenCalledWith"))
_JEST_ORDER = {"toBeGreaterThan": 1, "toBeGreaterThanOrEqual": 1, "toBeLessThan": -1, "toBeLessThanOrEqual": -1}
_JEST_THROWS = frozenset(("toThrow", "toThrowError"))
_CHAI_EQUAL = frozenset(("equal", "equals", "eq", "eql", "eqls", "exactly", "lengthOf", "length"))
_CHAI_OTHER = frozenset(("include", "includes", "contain", "contains", "match", "a", "an", "string"))
_CHAI_ORDER = {
    **dict.fromkeys(("above", "gt", "greaterThan", "least", "gte"), 1),
    **dict.fromkeys(("below", "lt", "lessThan", "most", "lte"), -1),
}
_CHAI_THROWS = frozenset(("throw", "throws", "Throw"))
_PROMISE_STEPS = frozenset(("resolves", "rejects", "eventually", "rejected", "rejectedWith", "fulfilled", "become"))
_ORDER = {">": 1, ">=": 1, "<": -1, "<=": -1}
_HIGH_NUMBER, _LOW_NUMBER = "999999999999999", "-999999999999999"

_VALUE_CHANGED = "its expected value is changed"
_TURNED_ROUND = "its assertion is turned round"
_OTHER_ERROR = "an unrelated error is thrown"
_ERROR = 'new (class Unrelated extends Error { name = "Unrelated"; code = "Unrelated"; })("Unrelated ~")'
"""An error that can be recognized by whatever a runner shows of it: type, name, code or message."""


class AssertionChange(NamedTuple):
    """One way in which an assertion can be altered."""

    kind: AlterationKind
    edit: ScriptEdit
    message: str


class _Step(NamedTuple):
    """A part of a chain: `.to`, or `.toBe(3)`."""

    name: str
    before: int
    """The end of the expression before its dot."""
    end: int
    args: list[Node] | None


def is_assertion(node: Node, file: ScriptFile) -> bool:
    return (
        _assert_name(node, file) is not None
        or _parse_chain(node) is not None
        or bool(_find_response_expectations(node, file))
    )


_EQUALITY_METHODS = frozenset({"equals", "equal", "eq", "isEqual", "isEqualTo", "same", "sameAs"})


def list_assertion_changes(node: Node, file: ScriptFile, callback: Node | None) -> list[AssertionChange]:
    """List the ways to alter an assertion so that it must fail."""
    name = _assert_name(node, file)
    if name is not None:
        return list(_assert_changes(node, name, file, callback))
    chain = _parse_chain(node)
    if chain is not None:
        return list(_alter_chain(node, chain, callback))
    return [change for args in _find_response_expectations(node, file) for change in _alter_response(args, callback)]


def _assert_name(node: Node, file: ScriptFile) -> str | None:
    """Return the function of `assert` that a call uses, empty for `assert` itself; None for any other call."""
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    if callee is None:
        return None
    if callee.type == "identifier":
        binding = file.bindings.get(get_text(callee))
        if binding is None or binding.module not in _MODULES:
            return "" if get_text(callee) == "assert" else None
        is_known = binding.name in _ROOTS | _TRUTHS | _CHAI_TURNED.keys() and binding.module != "node:test"
        return binding.name if is_known else None
    owner, field = callee.child_by_field_name("object"), callee.child_by_field_name("property")
    if callee.type != "member_expression" or owner is None or field is None:
        return None
    binding = file.bindings.get(get_text(owner))
    is_bound = binding is not None and binding.module in _MODULES - {"node:test"} and binding.name in _ROOTS
    return get_text(field) if is_bound or _ASSERT.search(get_text(owner)) else None


def _assert_changes(call: Node, name: str, file: ScriptFile, callback: Node | None) -> Iterator[AssertionChange]:
    args = list_arguments(call)
    if not args or (name in _AWAITED and not _is_settled(call)):
        return
    if name in _TRUTHS:
        yield from _alter_truth(args[0], callback)
        return
    if name in _EQUALITIES and len(args) > 1:
        yield from _alter_literal(AlterationKind.literal, args[1::-1], callback)
    if inversion := _invert_assertion(call, name, file):
        yield inversion
    if name in ("throws", "rejects") and len(args) > 1:
        yield from _alter_error(args[0], args[1], is_promise=name == "rejects")
    if name in ("match", "include", "isAbove", "isBelow") and len(args) > 1:
        yield from _alter_loose_literal(args[1], 1 if name == "isAbove" else -1)


def _alter_truth(value: Node, callback: Node | None) -> Iterator[AssertionChange]:
    expression = unwrap_expression(value)
    operator = expression.child_by_field_name("operator") if expression.type == "binary_expression" else None
    if operator is not None and operator.type in ("==", "==="):
        operands = [expression.child_by_field_name(field) for field in ("right", "left")]
        yield from _alter_literal(AlterationKind.literal, [field for field in operands if field is not None], callback)
    text = value.text or b""
    yield AssertionChange(
        AlterationKind.negated, ScriptEdit(value.start_byte, value.end_byte, b"!(" + text + b")"), _TURNED_ROUND
    )
    if _is_comparison_call(expression):
        numbers = (node for arg in list_arguments(expression) for node in walk(arg) if node.type == "number")
        for number in islice(numbers, 1):
            edit = ScriptEdit(number.start_byte, number.end_byte, increment_number(get_text(number)).encode())
            yield AssertionChange(AlterationKind.other, edit, _VALUE_CHANGED)
    right = expression.child_by_field_name("right")
    if operator is not None and right is not None and operator.type in _ORDER:
        yield from _alter_loose_literal(right, _ORDER[operator.type])


def _is_comparison_call(node: Node) -> bool:
    """Return whether a call is a method that compares an object with another."""
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    field = callee.child_by_field_name("property") if callee is not None else None
    return field is not None and get_text(field) in _EQUALITY_METHODS


def _invert_assertion(call: Node, name: str, file: ScriptFile) -> AssertionChange | None:
    is_chai = any(binding.module in ("chai", "vitest") for binding in file.bindings.values())
    opposite = (_CHAI_TURNED if is_chai else _OPPOSITES).get(name, "")
    callee = call.child_by_field_name("function")
    field = callee.child_by_field_name("property") if callee is not None else None
    if callee is not None and field is None:
        # The function was imported by name, so its opposite must be imported too.
        field = callee
        local = (bound for bound, binding in file.bindings.items() if binding.name == opposite)
        opposite = next(local, "") if opposite else ""
    if not opposite or field is None:
        return None
    return AssertionChange(
        AlterationKind.negated, ScriptEdit(field.start_byte, field.end_byte, opposite.encode()), _TURNED_ROUND
    )


def _alter_error(
    function: Node, expected: Node, *, is_promise: bool, by_text: bool = False
) -> Iterator[AssertionChange]:
    """Alter the expected error type or pattern. With `by_text`, a string is a pattern and not a message."""
    expected_text = get_text(expected)
    is_type = (
        expected.type in ("identifier", "member_expression")
        and expected_text != "Error"
        and expected_text[:1].isupper()
    )
    is_text = expected.type in ("string", "template_string")
    is_check = expected.type in ("regex", "object", "arrow_function", "function_expression")
    if is_type or is_check or (by_text and is_text):
        new = f"Promise.reject({_ERROR})" if is_promise else f"() => {{ throw {_ERROR}; }}"
        yield AssertionChange(
            AlterationKind.unrelated, ScriptEdit(function.start_byte, function.end_byte, new.encode()), _OTHER_ERROR
        )
    if expected.type == "object":
        yield from _alter_literal(AlterationKind.literal, [expected], None)
    elif expected.type == "regex" or (by_text and is_text):
        yield from _alter_loose_literal(expected, 0)


def _alter_literal(kind: AlterationKind, nodes: list[Node], callback: Node | None) -> Iterator[AssertionChange]:
    edits = (change_expected_literal(node, callback) for node in nodes)
    edit = next((edit for edit in edits if edit is not None), None)
    if edit is not None:
        yield AssertionChange(kind, edit, _VALUE_CHANGED)


def _alter_loose_literal(node: Node, direction: int) -> Iterator[AssertionChange]:
    """Replace the literal of a loose comparison by a distant value, or by a pattern that matches nothing."""
    if node.type == "regex" and (pattern := node.child_by_field_name("pattern")) is not None:
        new = b"(?:" + (pattern.text or b"") + b")~"
        yield AssertionChange(
            AlterationKind.other, ScriptEdit(pattern.start_byte, pattern.end_byte, new), _VALUE_CHANGED
        )
    elif get_text(node).lstrip("-").replace(".", "").isdigit():
        extreme = _LOW_NUMBER if direction < 0 else _HIGH_NUMBER
        yield AssertionChange(
            AlterationKind.other, ScriptEdit(node.start_byte, node.end_byte, extreme.encode()), _VALUE_CHANGED
        )
    elif node.type in ("string", "template_string", "object") and (edit := change_literal(node)) is not None:
        yield AssertionChange(AlterationKind.other, edit, _VALUE_CHANGED)


class _Chain(NamedTuple):
    root: Node
    """`expect(x)`, or `x.should`."""
    subject: Node | None
    steps: list[_Step]


def _parse_chain(node: Node) -> _Chain | None:
    """Parse a whole chained assertion; None if the node is not a chain or only a part of one."""
    if node.type not in ("call_expression", "member_expression"):
        return None
    chain = _parse_chain_parts(node)
    parent = node.parent if chain is not None else None
    is_part = parent is None or parent.type == "member_expression" or node == parent.child_by_field_name("function")
    return None if is_part else chain


def _parse_chain_parts(node: Node) -> _Chain | None:
    steps: list[_Step] = []
    args: list[Node] | None = None
    current: Node | None = node
    while current is not None:
        if current.type == "call_expression":
            callee = current.child_by_field_name("function")
            if callee is not None and get_text(callee) in ("expect", "expect.soft", "should", "chai.expect"):
                subject = list_arguments(current)
                return _Chain(current, subject[0] if subject else None, steps[::-1]) if steps and args is None else None
            args, current = list_arguments(current), callee
        elif current.type == "member_expression":
            owner, field = current.child_by_field_name("object"), current.child_by_field_name("property")
            if owner is None or field is None:
                return None
            if get_text(field) == "should" and steps:
                return _Chain(current, owner, steps[::-1])
            steps.append(_Step(get_text(field), owner.end_byte, field.end_byte, args))
            args, current = None, owner
        else:
            return None
    return None


def _alter_chain(node: Node, chain: _Chain, callback: Node | None) -> Iterator[AssertionChange]:
    names = [step.name for step in chain.steps]
    last = chain.steps[-1]
    if not _PROMISE_STEPS.isdisjoint(names) and not _is_settled(node):
        return
    is_matcher = _MATCHER.match(last.name) is not None
    if is_matcher and last.args is None:
        return
    if "not" not in names:
        yield from _alter_value(last, callback)
    if "Snapshot" in last.name:
        return
    if "not" in names:
        step = chain.steps[names.index("not")]
        edit = ScriptEdit(step.before, step.end, b"")
    elif is_matcher:
        edit = ScriptEdit(last.before, last.before, b".not")
    else:
        position = next((step.end for step in chain.steps if step.name == "to"), chain.root.end_byte)
        edit = ScriptEdit(position, position, b".not")
    yield AssertionChange(AlterationKind.negated, edit, _TURNED_ROUND)
    if "not" not in names and last.args and chain.subject and last.name in _JEST_THROWS | _CHAI_THROWS:
        is_promise = "rejects" in names
        yield from _alter_error(chain.subject, last.args[0], is_promise=is_promise, by_text=True)


def _alter_value(step: _Step, callback: Node | None) -> Iterator[AssertionChange]:
    args = step.args
    if not args:
        return
    if step.name in _JEST_EQUAL | _CHAI_EQUAL:
        yield from _alter_literal(AlterationKind.literal, args, callback)
    elif step.name in ("property", "toHaveProperty") and len(args) > 1:
        yield from _alter_literal(AlterationKind.literal, args[1:2], callback)
    elif step.name in _JEST_OTHER | _CHAI_OTHER:
        yield from _alter_loose_literal(args[0], 0)
    elif direction := (_JEST_ORDER | _CHAI_ORDER).get(step.name, 0):
        yield from _alter_loose_literal(args[0], direction)


def _find_response_expectations(node: Node, file: ScriptFile) -> list[list[Node]]:
    """Return what supertest expects, `request(app).get("/").expect(200, done)`, if the test waits for the response."""
    parent = node.parent if node.type == "call_expression" and b".expect(" in (node.text or b"") else None
    if parent is None or parent.type == "member_expression":
        return []
    steps: list[list[Node]] = []
    is_waited = _is_settled(node)
    current: Node | None = node
    while current is not None and current.type == "call_expression":
        callee = current.child_by_field_name("function")
        field = callee.child_by_field_name("property") if callee is not None else None
        if callee is None or field is None:
            binding = file.bindings.get(get_text(callee)) if callee is not None else None
            return steps[::-1] if is_waited and binding is not None and binding.module == "supertest" else []
        args = list_arguments(current)
        is_waited = is_waited or any(get_text(last) in ("done", "cb", "callback") for last in args[-1:])
        steps += [args] if get_text(field) == "expect" and args else []
        current = callee.child_by_field_name("object")
    return []


def _alter_response(args: list[Node], callback: Node | None) -> Iterator[AssertionChange]:
    """Alter an expected status, body, or header value."""
    literals = ("string", "template_string", "number", "object", "array")
    is_header = args[0].type == "string" and len(args) > 1 and args[1].type in (*literals, "regex")
    value = args[1] if is_header else args[0]
    if value.type in literals:
        yield from _alter_literal(AlterationKind.literal, [value], callback)
    elif value.type == "regex":
        yield from _alter_loose_literal(value, 0)


def _is_settled(node: Node) -> bool:
    """Return whether the test waits for this promise."""
    parent = node.parent
    if parent is None:
        return False
    return parent.type in ("await_expression", "return_statement", "arrow_function")
