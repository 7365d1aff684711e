"""Make literals comparable, weigh how distinctive they are, and pair the questions and answers of tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, cast

Value = Hashable
"""A literal in comparable form: lists become tuples, whole floats become integers."""

Row = tuple[Value, Value]
"""A table's key and its value."""

NONE_SUCH: Value = ("no", "literal")
_TINY = (0, 1, -1, None, "", ())
"""Values that honest code often returns for its simplest cases."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_-]*")
_COMMON_NUMBERS = frozenset(
    {7, 10, 12, 24, 28, 29, 30, 31, 52, 60, 64, 90, 100, 128, 180, 255, 256, 360, 365, 366, 400, 512, 1000, 1024}
    | {3600, 4096, 65535, 65536, 86400, 10_000, 100_000, 1_000_000}
)
_LITERAL_NODES = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)
_RECKONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
}


class QuestionAndAnswer(NamedTuple):
    """A question of a test and the answer that it expects; `function_name` is empty for a row of a table."""

    function_name: str
    inputs: tuple[Value, ...]
    nested_values: frozenset[Value]
    """The inputs and everything inside them."""
    expected: Value


class TestLiterals(NamedTuple):
    """The questions and answers of all tests."""

    pairs: tuple[QuestionAndAnswer, ...]
    pools: tuple[frozenset[Value], ...]
    """The literals of each test: inputs and expectations stay together even if they have separate names."""
    inputs: frozenset[Value]


def get_literal(node: ast.AST | None) -> Value:
    """Return the literal value of an expression, or `NO_LITERAL`."""
    if not isinstance(node, _LITERAL_NODES):
        return NONE_SUCH
    if isinstance(node, ast.Constant):
        return normalize_value(node.value)
    try:
        return normalize_value(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _calculate(node) if isinstance(node, ast.BinOp) else NONE_SUCH


def _calculate(node: ast.BinOp) -> Value:
    """Calculate a sum or product of literals: `200 + 19.25` is another way to write 219.25."""
    left, right, reckon = get_literal(node.left), get_literal(node.right), _RECKONS.get(type(node.op))
    if reckon is None or left is NONE_SUCH or right is NONE_SUCH:
        return NONE_SUCH
    if not all(isinstance(item, int | float) for item in (left, right)) and not (
        isinstance(left, str) and isinstance(right, str)
    ):
        return NONE_SUCH
    try:
        return normalize_value(reckon(left, right))
    except (TypeError, ArithmeticError):
        return NONE_SUCH


def estimate_bits(value: Value) -> int:
    """Return how unlikely it is that two people write this literal by chance; 0 for common literals."""
    if value is None or isinstance(value, bool) or value is NONE_SUCH:
        return 0
    if isinstance(value, int):
        return _estimate_number_bits(abs(value))
    if isinstance(value, float):
        return min(6 + len(repr(value)), 20)
    if isinstance(value, str | bytes):
        if len(value) < 2:
            return 0
        is_identifier = isinstance(value, str) and _IDENTIFIER.fullmatch(value)
        return min(len(value), 10) if is_identifier else min(2 * len(value), 24)
    if isinstance(value, tuple):
        items = cast("tuple[Value, ...]", value)
        return min(sum(estimate_bits(item) + 2 for item in items), 40)
    return 4


def is_tiny(value: Value) -> bool:
    """Whether a value is typical of the simplest cases, such as 0, True or an empty list."""
    return isinstance(value, bool) or any(value == item and type(value) is type(item) for item in _TINY)


def is_plain_word(value: Value) -> bool:
    """Whether a value could be a name in any program: `json`, `utf-8`, `left_join`."""
    return isinstance(value, str) and value.replace("_", "").replace("-", "").replace(".", "").isalnum()


def walk_literals(value: Value) -> Iterator[Value]:
    """Yield a literal and all literals in it."""
    yield value
    if isinstance(value, tuple):
        for item in cast("tuple[Value, ...]", value):
            yield from walk_literals(item)


def _estimate_number_bits(size: int) -> int:
    if size <= 2:
        return 0
    if size <= 10:
        return 2
    discount = 3 if size in _COMMON_NUMBERS or size & (size - 1) == 0 else 0
    return (4 if size < 100 else 7 if size < 1000 else min(6 + len(str(size)), 20)) - discount


def normalize_value(value: Any) -> Value:
    """Convert a Python or JSON value to the form in which literals are compared."""
    if isinstance(value, list | tuple):
        return tuple(normalize_value(item) for item in cast("Iterable[Any]", value))
    if isinstance(value, set | frozenset):
        return tuple(sorted((normalize_value(item) for item in cast("Iterable[Any]", value)), key=repr))
    if isinstance(value, dict):
        return tuple(
            (normalize_value(key), normalize_value(item)) for key, item in cast("dict[Any, Any]", value).items()
        )
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return cast(Value, value)


def create_pair(function_name: str, inputs: list[Value], expected: Value) -> QuestionAndAnswer:
    return QuestionAndAnswer(
        function_name,
        tuple(inputs),
        frozenset(literal for input_ in inputs for literal in walk_literals(input_)),
        expected,
    )


def pair_row(cells: list[Value]) -> Iterator[QuestionAndAnswer]:
    """Pair a row of a table of cases: usually its last literal is expected, sometimes its first."""
    if 2 <= len(cells) <= 8:
        yield create_pair("", cells[:-1], cells[-1])
        yield create_pair("", cells[1:], cells[0])
