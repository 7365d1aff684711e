"""The literals of tests: which inputs a test gives and what it expects for them, and how telling a literal is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

Value = Hashable
"""A literal as something to compare by: lists and tuples alike, whole floats as integers."""

Row = tuple[Value, Value]
"""What a table is asked for, and what it gives."""

NONE_SUCH: Value = ("no", "literal")
_TINY = (0, 1, -1, None, "", ())
"""What honest code returns for its simplest cases all the time."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_-]*")
_COMMON = frozenset(
    {7, 10, 12, 24, 28, 29, 30, 31, 52, 60, 64, 90, 100, 128, 180, 255, 256, 360, 365, 366, 400, 512, 1000, 1024}
    | {3600, 4096, 65535, 65536, 86400, 10_000, 100_000, 1_000_000}
)
_EQUALS = frozenset(
    [
        "assertEqual",
        "assertEquals",
        "assertListEqual",
        "assertDictEqual",
        "assertTupleEqual",
        "assertSetEqual",
        "assertSequenceEqual",
        "assertCountEqual",
        "assertAlmostEqual",
        "assertMultiLineEqual",
        "assertIs",
        "assertIn",
    ]
)


_LITERAL_NODES = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)
_RECKONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
}


class Pair(NamedTuple):
    """One thing that a test asks and the answer that it expects; `called` is empty for a row of a table."""

    called: str
    inputs: tuple[Value, ...]
    within: frozenset[Value]
    """The inputs and everything inside them."""
    expected: Value


class Asked(NamedTuple):
    """What the tests ask, all of them together."""

    pairs: tuple[Pair, ...]
    pools: tuple[frozenset[Value], ...]
    """The literals of each test: where inputs and expectations have names of their own, they still lie together."""
    inputs: frozenset[Value]


def value_of(node: ast.AST | None) -> Value:
    """The literal that an expression is, or `NONE_SUCH`."""
    if not isinstance(node, _LITERAL_NODES):
        return NONE_SUCH
    if isinstance(node, ast.Constant):
        return plain(node.value)
    try:
        return plain(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _reckoned(node) if isinstance(node, ast.BinOp) else NONE_SUCH


def _reckoned(node: ast.BinOp) -> Value:
    """What a sum or product of literals comes to: `200 + 19.25` is 219.25 written otherwise."""
    left, right, reckon = value_of(node.left), value_of(node.right), _RECKONS.get(type(node.op))
    if reckon is None or left is NONE_SUCH or right is NONE_SUCH:
        return NONE_SUCH
    if not all(isinstance(one, int | float) for one in (left, right)) and not (
        isinstance(left, str) and isinstance(right, str)
    ):
        return NONE_SUCH
    try:
        return plain(reckon(left, right))
    except (TypeError, ArithmeticError):
        return NONE_SUCH


def bits(value: Value) -> int:
    """How unlikely it is that two people write this literal by chance; 0 for what everybody writes."""
    if value is None or isinstance(value, bool) or value is NONE_SUCH:
        return 0
    if isinstance(value, int):
        return _bits_of_number(abs(value))
    if isinstance(value, float):
        return min(6 + len(repr(value)), 20)
    if isinstance(value, str | bytes):
        if len(value) < 2:
            return 0
        plain = isinstance(value, str) and _IDENTIFIER.fullmatch(value)
        return min(len(value), 10) if plain else min(2 * len(value), 24)
    if isinstance(value, tuple):
        inner = cast("tuple[Value, ...]", value)
        return min(sum(bits(one) + 2 for one in inner), 40)
    return 4


def is_tiny(value: Value) -> bool:
    """Whether it is one of the values that simplest cases have, such as 0, True or an empty list."""
    return isinstance(value, bool) or any(value == one and type(value) is type(one) for one in _TINY)


def is_plain_word(value: Value) -> bool:
    """Whether it could be a name in any program: `json`, `utf-8`, `left_join`."""
    return isinstance(value, str) and value.replace("_", "").replace("-", "").replace(".", "").isalnum()


def read_tests(tests: Mapping[str, bytes]) -> Asked:
    """What every test file asks. A file that is no Python and no JSON of this interpreter's adds nothing."""
    pairs: list[Pair] = []
    pools: list[frozenset[Value]] = []
    for path, text in tests.items():
        if path.endswith((".json", ".jsonl")):
            pairs += _rows_of_json(text)
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        pairs += _pairs(tree)
        pools += _pools(tree)
    pools += [pair.within | {pair.expected} for pair in pairs]
    return Asked(tuple(pairs), tuple(pools), frozenset(one for pair in pairs for one in pair.within))


def within(value: Value) -> Iterator[Value]:
    """A literal and all literals in it."""
    yield value
    if isinstance(value, tuple):
        for one in cast("tuple[Value, ...]", value):
            yield from within(one)


def _bits_of_number(size: int) -> int:
    if size <= 2:
        return 0
    if size <= 10:
        return 2
    known = 3 if size in _COMMON or size & (size - 1) == 0 else 0
    return (4 if size < 100 else 7 if size < 1000 else min(6 + len(str(size)), 20)) - known


def plain(value: Any) -> Value:
    """A value of the interpreter, or of JSON, in the form that literals are compared by."""
    if isinstance(value, list | tuple):
        return tuple(plain(one) for one in cast("Iterable[Any]", value))
    if isinstance(value, set | frozenset):
        return tuple(sorted((plain(one) for one in cast("Iterable[Any]", value)), key=repr))
    if isinstance(value, dict):
        return tuple((plain(key), plain(one)) for key, one in cast("dict[Any, Any]", value).items())
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return cast(Value, value)


def _pairs(tree: ast.Module) -> Iterator[Pair]:
    yield from _tables(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    top = ast.Module([node for node in tree.body if not isinstance(node, definitions)], [])
    everywhere = _named(top)
    for scope in (top, *functions):
        named = {**everywhere, **_named(scope)}
        for one, other in _compared(scope):
            yield from _sides(named.get(getattr(one, "id", ""), one), named.get(getattr(other, "id", ""), other), named)


def _named(scope: ast.AST) -> dict[str, ast.expr]:
    """What the names of a scope were last assigned: tests like to name what they got and what they want."""
    return {
        target.id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _compared(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a scope's assertions hold against one another."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
            yield node.left, node.comparators[0]
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Call):
            yield node.test, ast.Constant(True)
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            yield node.test.operand, ast.Constant(False)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _EQUALS and len(node.args) > 1:
                yield node.args[0], node.args[1]
            elif node.func.attr in ("assertTrue", "assertFalse", "assertIsNone") and node.args:
                yield node.args[0], ast.Constant({"assertTrue": True, "assertFalse": False}.get(node.func.attr))


def _tables(tree: ast.Module) -> Iterator[Pair]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List):
            yield from _row(node)
        elif isinstance(node, ast.Dict):
            for key, one in zip(node.keys, node.values, strict=True):
                yield from _keyed(key, one)


def _sides(one: ast.expr, other: ast.expr, named: Mapping[str, ast.expr]) -> Iterator[Pair]:
    for asked, wanted in ((one, other), (other, one)):
        expected = value_of(_bare(wanted))
        if expected is NONE_SUCH:
            continue
        for call in ast.walk(asked):
            if isinstance(call, ast.Call) and (call.args or call.keywords):
                words = (*call.args, *(word.value for word in call.keywords))
                given = [value_of(named.get(getattr(arg, "id", ""), arg)) for arg in words]
                known = [value for value in given if value is not NONE_SUCH]
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if known:
                    yield _pair(name, known, expected)


def _bare(node: ast.expr) -> ast.expr:
    """What stands inside `pytest.approx(...)`, `Decimal(...)` and their like."""
    if isinstance(node, ast.Call) and len(node.args) >= 1:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("approx", "Decimal", "Fraction", "set", "frozenset", "tuple", "list", "float"):
            return node.args[0]
    return node


def _pair(called: str, inputs: list[Value], expected: Value) -> Pair:
    return Pair(called, tuple(inputs), frozenset(inner for one in inputs for inner in within(one)), expected)


def _row(node: ast.Tuple | ast.List) -> Iterator[Pair]:
    """A row of a table of cases: its last literal is what is expected, as a rule, and sometimes its first."""
    given = [value for one in node.elts if (value := value_of(_bare(one))) is not NONE_SUCH]
    if 2 <= len(given) <= 8:
        yield _pair("", given[:-1], given[-1])
        yield _pair("", given[1:], given[0])


def _keyed(key: ast.expr | None, one: ast.expr) -> Iterator[Pair]:
    asked, wanted = value_of(key), value_of(one)
    if NONE_SUCH not in (asked, wanted):
        yield _pair("", [asked], wanted)


def _pools(tree: ast.Module) -> Iterator[frozenset[Value]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield frozenset(value for one in ast.walk(node) if (value := value_of(one)) is not NONE_SUCH)


def _rows_of_json(text: bytes) -> Iterator[Pair]:
    for line in (text, *text.splitlines()):
        try:
            data = json.loads(line)
        except ValueError:
            continue
        stack: list[Any] = [data]
        while stack:
            one = stack.pop()
            if isinstance(one, dict):
                stack += cast("dict[str, Any]", one).values()
            elif isinstance(one, list):
                row = cast("list[Any]", one)
                stack += row
                if 2 <= len(row) <= 8:
                    cells = [plain(inner) for inner in row]
                    yield _pair("", cells[:-1], cells[-1])
