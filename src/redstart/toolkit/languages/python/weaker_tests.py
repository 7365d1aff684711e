"""Compare the assertions of two versions of a test function by their syntax."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from redstart.toolkit.languages.python.syntax import parse_source


class Strength(IntEnum):
    """How much an assertion demands of its subject."""

    truth = 0
    """Any value that counts as true, or any exception."""
    relation = 1
    """A border, a type, a member, or anything but one value."""
    near = 2
    """A value within a tolerance, or an exception of one type."""
    exact = 3


class Assertion(NamedTuple):
    subject: str
    """The dump of what is checked."""
    strength: Strength
    text: str
    """The whole assertion, in one form whatever its layout."""


_METHODS = {
    "assertAlmostEqual": Strength.near,
    "assertCountEqual": Strength.near,
    "assertTrue": Strength.truth,
    "assertFalse": Strength.truth,
    "assertIsNotNone": Strength.truth,
    "assertNotEqual": Strength.relation,
    "assertIn": Strength.relation,
    "assertNotIn": Strength.relation,
    "assertIsInstance": Strength.relation,
    "assertGreater": Strength.relation,
    "assertGreaterEqual": Strength.relation,
    "assertLess": Strength.relation,
    "assertLessEqual": Strength.relation,
    "assertRegex": Strength.relation,
}
"""What the methods of unittest demand that compare less exactly. Any other one, and any helper, may be exact."""
_EXCEPTIONS = ("assertRaises", "assertRaisesRegex", "raises")
_ANY_EXCEPTION = ("Exception", "BaseException")
_NEGATIVE = (ast.NotEq, ast.IsNot)
_HELPER_WORDS = ("assert", "check", "expect", "verify", "compare", "ensure", "should")
"""How functions that assert something are usually named."""


def explain_weaker_test(before: str, after: str) -> str:
    """Return how the new text of a test asserts less than the old one; empty if it does not."""
    old_tree, new_tree = (parse_source(textwrap.dedent(text).encode()) for text in (before, after))
    if old_tree is None or new_tree is None:
        return ""
    old, new = list(_iter_assertions(old_tree)), list(_iter_assertions(new_tree))
    dropped, added = _subtract(old, new), _subtract(new, old)
    for assertion in dropped:
        partners = [item for item in added if item.subject == assertion.subject]
        if partners and max(item.strength for item in partners) < assertion.strength:
            return f"it asserted `{assertion.text}`, and now only `{partners[0].text}`"
    if dropped and len(new) < len(old) and not _subtract_calls(new_tree, old_tree):
        return f"it does not assert `{dropped[0].text}` any more"
    return ""


def _iter_assertions(tree: ast.AST) -> Iterator[Assertion]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield Assertion(*_judge_expression(node.test), ast.unparse(node.test))
        elif isinstance(node, ast.Call) and (name := _get_call_name(node)).startswith(("assert", "raises")):
            yield _read_call(node, name)


def _read_call(node: ast.Call, name: str) -> Assertion:
    if name in _EXCEPTIONS:
        expected = ast.unparse(node.args[0]) if node.args else ""
        has_pattern = name == "assertRaisesRegex" or any(item.arg == "match" for item in node.keywords)
        strength = Strength.exact if has_pattern else Strength.near
        return Assertion("an exception", Strength.truth if expected in _ANY_EXCEPTION else strength, ast.unparse(node))
    subject = ast.dump(node.args[0]) if node.args else ""
    if name == "assertTrue" and node.args:
        subject, strength = _judge_expression(node.args[0])
        return Assertion(subject, strength, ast.unparse(node))
    return Assertion(subject, _METHODS.get(name, Strength.exact), ast.unparse(node))


def _judge_expression(test: ast.expr) -> tuple[str, Strength]:
    """Return what an asserted expression is about, and how much it demands."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        subject, strength = _judge_expression(test.values[0])
        return subject, min(strength, Strength.relation)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        is_exact = isinstance(test.ops[0], ast.Eq | ast.Is)
        right = test.comparators[0]
        is_near = is_exact and isinstance(right, ast.Call) and _get_call_name(right) == "approx"
        strength = Strength.near if is_near else Strength.exact if is_exact else Strength.relation
        is_trivial = isinstance(test.ops[0], _NEGATIVE) and isinstance(right, ast.Constant) and right.value is None
        return ast.dump(test.left), Strength.truth if is_trivial else strength
    if isinstance(test, ast.Call) and _get_call_name(test) == "isinstance" and test.args:
        return ast.dump(test.args[0]), Strength.relation
    return ast.dump(test), Strength.truth


def _get_call_name(node: ast.Call) -> str:
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _subtract(these: list[Assertion], others: list[Assertion]) -> list[Assertion]:
    """Return the assertions without an equal one among the others."""
    remaining = [item.text for item in others]
    result: list[Assertion] = []
    for item in these:
        if item.text in remaining:
            remaining.remove(item.text)
        else:
            result.append(item)
    return result


def _subtract_calls(new: ast.AST, old: ast.AST) -> set[str]:
    """Return the names of helpers that the new version calls and the old one does not, and that may assert."""
    names, old_names = (
        {_get_call_name(node).lstrip("_") for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for tree in (new, old)
    )
    return {name for name in names - old_names if name.startswith(_HELPER_WORDS)}
