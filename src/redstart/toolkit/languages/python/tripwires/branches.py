"""Find code that returns a literal for certain literals: branches and lookup tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, cast

from redstart.toolkit.languages.python.tripwires.literals import NONE_SUCH, Row, Value, value_of
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_NARROW = 4
"""A range of whole numbers is treated as a list of them if its ends differ by at most this much."""


class Branch(NamedTuple):
    """Code that runs only for some literals, and the literal that it returns (`NO_LITERAL` if it returns none)."""

    node: ast.AST
    subject: str
    """The compared expression as text, which the arms of one chain share."""
    keys: tuple[Value, ...]
    result: Value
    partial: bool = False
    """Whether only a part or a property of the subject is compared, such as its start or its length."""


class Table(NamedTuple):
    """A literal dictionary or a sequence of pairs; `rows` are those that consist of literals."""

    node: ast.AST
    rows: tuple[Row, ...]


class LiteralComparison(NamedTuple):
    """A condition's subject and the literals that it is compared with."""

    subject: str
    keys: tuple[Value, ...]
    negated: bool = False
    partial: bool = False

    def joined(self, other: LiteralComparison) -> LiteralComparison:
        subject = f"{self.subject} {other.subject}"
        return LiteralComparison(
            subject, self.keys + other.keys, self.negated or other.negated, self.partial or other.partial
        )


def branches(module: ParsedModule) -> Iterator[Branch]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If):
            yield from _if(module, node)
        elif isinstance(node, ast.IfExp):
            yield from _choice(node, node.test, node.body, node.orelse)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) and len(node.values) == 2:
            yield from _choice(node, node.values[0], node.values[1], None)
        elif isinstance(node, ast.Match):
            yield from _match(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple | ast.List):
            yield from _picked(node, node.value)
        elif isinstance(node, ast.BinOp) and not isinstance(module.parents.get(node), ast.BinOp):
            yield from _reckoned(node)


def _reckoned(node: ast.BinOp) -> Iterator[Branch]:
    """Yield a comparison inside arithmetic, as in `computed + 5 * (x == key)`."""
    whole: LiteralComparison | None = None
    for item in ast.walk(node):
        if isinstance(item, ast.Compare) and (found := compared(item)) is not None:
            whole = found if whole is None else whole.joined(found)
    if whole is not None:
        yield Branch(node, whole.subject, whole.keys, NONE_SUCH, whole.partial)


def tables(module: ParsedModule) -> Iterator[Table]:
    for node in ast.walk(module.tree):
        rows: list[Row] = []
        if isinstance(node, ast.Dict):
            rows = [(value_of(key), value_of(item)) for key, item in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            two = [elt for elt in node.elts if isinstance(elt, ast.Tuple | ast.List) and len(elt.elts) == 2]
            rows = (
                [(value_of(item.elts[0]), value_of(item.elts[1])) for item in two] if len(two) == len(node.elts) else []
            )
        known = tuple(row for row in rows if NONE_SUCH not in row)
        if known:
            yield Table(node, known)
    yield from _assigned(module)


def _assigned(module: ParsedModule) -> Iterator[Table]:
    """Yield tables that are filled line by line, as in `known[key] = value`."""
    filled: dict[str, tuple[ast.AST, list[Row]]] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            row = (value_of(node.targets[0].slice), value_of(node.value))
            if NONE_SUCH not in row:
                filled.setdefault(ast.unparse(node.targets[0].value), (node, []))[1].append(row)
    for node, rows in filled.values():
        yield Table(node, tuple(rows))


def lists(module: ParsedModule) -> Iterator[tuple[ast.AST, tuple[Value, ...]]]:
    """Yield literal sequences with at least two elements."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            value = value_of(node)
            if isinstance(value, tuple):
                yield node, cast("tuple[Value, ...]", value)


def _if(module: ParsedModule, node: ast.If) -> Iterator[Branch]:
    asks = compared(node.test)
    if asks is None:
        return
    taken = node.orelse if asks.negated else node.body
    subject, keys = asks.subject, (*asks.keys, *_around(module, node))
    value = next((value for line in taken[:2] if (value := _given(line)) is not None), None)
    if taken:
        yield Branch(node.test, subject, keys, value_of(value), asks.partial)


def given(module: ParsedModule) -> Iterator[Value]:
    """Yield the literals that conditions of any kind lead to."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If):
            lines = (*node.body[:2], *node.orelse[:2])
            values = [value_of(value) for line in lines if (value := _given(line)) is not None]
            yield from (item for item in values if item is not NONE_SUCH)


def _around(module: ParsedModule, node: ast.If) -> Iterator[Value]:
    """Yield the literals that the enclosing conditions compare with."""
    inner: ast.AST = node
    for outer in module.above(node):
        if isinstance(outer, ast.If) and inner in outer.body and (found := compared(outer.test)) is not None:
            yield from found.keys
        inner = outer


def _given(line: ast.stmt) -> ast.expr | None:
    """Return the value that a statement returns, yields, assigns or appends; None for other statements."""
    if isinstance(line, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign):
        return line.value
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Yield):
        return line.value.value
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and line.value.args:
        return line.value.args[-1]
    return None


def _choice(node: ast.AST, test: ast.expr, body: ast.expr, other: ast.expr | None) -> Iterator[Branch]:
    if (found := compared(test)) is not None:
        taken = other if found.negated else body
        yield Branch(node, found.subject, found.keys, value_of(taken), found.partial)


def _match(node: ast.Match) -> Iterator[Branch]:
    subject = ast.unparse(node.subject)
    for case in node.cases:
        values = [value_of(item.value) for item in ast.walk(case.pattern) if isinstance(item, ast.MatchValue)]
        values += [item.value for item in ast.walk(case.pattern) if isinstance(item, ast.MatchSingleton)]
        keys = tuple(item for item in values if item is not NONE_SUCH)
        result = next((value for line in case.body[:2] if (value := _given(line)) is not None), None)
        if keys:
            yield Branch(case.pattern, subject, keys, value_of(result))


def _picked(node: ast.Subscript, options: ast.Tuple | ast.List) -> Iterator[Branch]:
    """Yield a choice by index, as in `(computed, literal)[x == key]`."""
    if (found := compared(node.slice)) is not None:
        for elt in options.elts:
            if (value := value_of(elt)) is not NONE_SUCH:
                yield Branch(node, found.subject, found.keys, value, found.partial)


def compared(test: ast.expr) -> LiteralComparison | None:
    """Return what a condition compares with which literals, and whether it is negated; None if it does not."""
    if isinstance(test, ast.BoolOp):
        parts = [found for item in test.values if (found := compared(item)) is not None]
        whole = parts[0] if parts else None
        for part in parts[1:]:
            whole = part if whole is None else whole.joined(part)
        return whole
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = compared(test.operand)
        return None if inner is None else inner._replace(negated=not inner.negated)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.args:
        key, asks = value_of(test.args[0]), test.func.attr
        if key is NONE_SUCH or asks not in ("startswith", "endswith", "__eq__", "match", "fullmatch", "search"):
            return None
        return LiteralComparison(ast.unparse(test.func.value), (key,), partial=asks != "__eq__")
    if not isinstance(test, ast.Compare):
        return None
    if len(test.ops) == 1:
        return _comparison(test.left, test.ops[0], test.comparators[0])
    return _narrow(test)


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> LiteralComparison | None:
    if not isinstance(op, ast.Eq | ast.Is | ast.In | ast.NotEq | ast.IsNot | ast.NotIn):
        return None
    negated = isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn)
    holds = isinstance(op, ast.In | ast.NotIn)
    for subject, literal in ((left, right), (right, left)):
        value = value_of(literal)
        # `n % 3` is a property of the argument, not the argument itself.
        if value is NONE_SUCH or isinstance(subject, ast.BinOp | ast.BoolOp | ast.Compare | ast.Constant):
            continue
        several = isinstance(value, tuple) and (isinstance(subject, ast.Tuple) or (holds and literal is right))
        keys = cast("tuple[Value, ...]", value if several else (value,))
        partial = isinstance(subject, ast.Call | ast.Subscript) or (holds and literal is left)
        return LiteralComparison(ast.unparse(subject), keys, negated, partial)
    return None


def _narrow(test: ast.Compare) -> LiteralComparison | None:
    """Return a narrow range such as `999 < x < 1001` as a comparison with its numbers; None for other conditions."""
    low, high = value_of(test.left), value_of(test.comparators[-1])
    if len(test.ops) != 2 or not isinstance(low, int) or not isinstance(high, int) or not 0 <= high - low <= _NARROW:
        return None
    return LiteralComparison(ast.unparse(test.comparators[0]), tuple(range(low, high + 1)))
