"""Find code that returns a literal for certain literals: branches and lookup tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, cast

from redstart.toolkit.languages.python.tripwires.literals import NONE_SUCH, Row, Value, get_literal
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

    def combine(self, other: LiteralComparison) -> LiteralComparison:
        subject = f"{self.subject} {other.subject}"
        return LiteralComparison(
            subject, self.keys + other.keys, self.negated or other.negated, self.partial or other.partial
        )


def find_branches(module: ParsedModule) -> Iterator[Branch]:
    for node in module.nodes:
        if isinstance(node, ast.If):
            yield from _read_if(module, node)
        elif isinstance(node, ast.IfExp):
            yield from _read_choice(node, node.test, node.body, node.orelse)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) and len(node.values) == 2:
            yield from _read_choice(node, node.values[0], node.values[1], None)
        elif isinstance(node, ast.Match):
            yield from _match(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple | ast.List):
            yield from _read_index_choice(node, node.value)
        elif isinstance(node, ast.BinOp) and not isinstance(module.parents.get(node), ast.BinOp):
            yield from _find_arithmetic_branches(node)


def _find_arithmetic_branches(node: ast.BinOp) -> Iterator[Branch]:
    """Yield a comparison inside arithmetic, as in `computed + 5 * (x == key)`."""
    combined: LiteralComparison | None = None
    for item in ast.walk(node):
        if isinstance(item, ast.Compare) and (comparison := parse_comparison(item)) is not None:
            combined = comparison if combined is None else combined.combine(comparison)
    if combined is not None:
        yield Branch(node, combined.subject, combined.keys, NONE_SUCH, combined.partial)


def find_tables(module: ParsedModule) -> Iterator[Table]:
    for node in module.nodes:
        rows: list[Row] = []
        if isinstance(node, ast.Dict):
            rows = [(get_literal(key), get_literal(item)) for key, item in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            pairs = [elt for elt in node.elts if isinstance(elt, ast.Tuple | ast.List) and len(elt.elts) == 2]
            rows = (
                [(get_literal(item.elts[0]), get_literal(item.elts[1])) for item in pairs]
                if len(pairs) == len(node.elts)
                else []
            )
        literal_rows = tuple(row for row in rows if NONE_SUCH not in row)
        if literal_rows:
            yield Table(node, literal_rows)
    yield from _find_assigned_tables(module)


def _find_assigned_tables(module: ParsedModule) -> Iterator[Table]:
    """Yield tables that are filled line by line, as in `known[key] = value`."""
    tables_by_name: dict[str, tuple[ast.AST, list[Row]]] = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            row = (get_literal(node.targets[0].slice), get_literal(node.value))
            if NONE_SUCH not in row:
                tables_by_name.setdefault(ast.unparse(node.targets[0].value), (node, []))[1].append(row)
    for node, rows in tables_by_name.values():
        yield Table(node, tuple(rows))


def find_lists(module: ParsedModule) -> Iterator[tuple[ast.AST, tuple[Value, ...]]]:
    """Yield literal sequences with at least two elements."""
    for node in module.nodes:
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            value = get_literal(node)
            if isinstance(value, tuple):
                yield node, cast("tuple[Value, ...]", value)


def _read_if(module: ParsedModule, node: ast.If) -> Iterator[Branch]:
    comparison = parse_comparison(node.test)
    if comparison is None:
        return
    statements = node.orelse if comparison.negated else node.body
    subject, keys = comparison.subject, (*comparison.keys, *_find_outer_keys(module, node))
    value = next((value for line in statements[:2] if (value := _get_result_value(line)) is not None), None)
    if statements:
        yield Branch(node.test, subject, keys, get_literal(value), comparison.partial)


def find_results(module: ParsedModule) -> Iterator[Value]:
    """Yield the literals that conditions of any kind lead to."""
    for node in module.nodes:
        if isinstance(node, ast.If):
            lines = (*node.body[:2], *node.orelse[:2])
            values = [get_literal(value) for line in lines if (value := _get_result_value(line)) is not None]
            yield from (item for item in values if item is not NONE_SUCH)


def _find_outer_keys(module: ParsedModule, node: ast.If) -> Iterator[Value]:
    """Yield the literals that the enclosing conditions compare with."""
    child: ast.AST = node
    for parent in module.iter_ancestors(node):
        if (
            isinstance(parent, ast.If)
            and child in parent.body
            and (comparison := parse_comparison(parent.test)) is not None
        ):
            yield from comparison.keys
        child = parent


def _get_result_value(line: ast.stmt) -> ast.expr | None:
    """Return the value that a statement returns, yields, assigns or appends; None for other statements."""
    if isinstance(line, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign):
        return line.value
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Yield):
        return line.value.value
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and line.value.args:
        return line.value.args[-1]
    return None


def _read_choice(node: ast.AST, test: ast.expr, body: ast.expr, orelse: ast.expr | None) -> Iterator[Branch]:
    if (comparison := parse_comparison(test)) is not None:
        outcome = orelse if comparison.negated else body
        yield Branch(node, comparison.subject, comparison.keys, get_literal(outcome), comparison.partial)


def _match(node: ast.Match) -> Iterator[Branch]:
    subject = ast.unparse(node.subject)
    for case in node.cases:
        values = [get_literal(item.value) for item in ast.walk(case.pattern) if isinstance(item, ast.MatchValue)]
        values += [item.value for item in ast.walk(case.pattern) if isinstance(item, ast.MatchSingleton)]
        keys = tuple(item for item in values if item is not NONE_SUCH)
        result = next((value for line in case.body[:2] if (value := _get_result_value(line)) is not None), None)
        if keys:
            yield Branch(case.pattern, subject, keys, get_literal(result))


def _read_index_choice(node: ast.Subscript, options: ast.Tuple | ast.List) -> Iterator[Branch]:
    """Yield a choice by index, as in `(computed, literal)[x == key]`."""
    if (comparison := parse_comparison(node.slice)) is not None:
        for elt in options.elts:
            if (value := get_literal(elt)) is not NONE_SUCH:
                yield Branch(node, comparison.subject, comparison.keys, value, comparison.partial)


def parse_comparison(test: ast.expr) -> LiteralComparison | None:
    """Return what a condition compares with which literals, and whether it is negated; None if it does not."""
    if isinstance(test, ast.BoolOp):
        parts = [comparison for item in test.values if (comparison := parse_comparison(item)) is not None]
        combined = parts[0] if parts else None
        for part in parts[1:]:
            combined = part if combined is None else combined.combine(part)
        return combined
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner_comparison = parse_comparison(test.operand)
        return None if inner_comparison is None else inner_comparison._replace(negated=not inner_comparison.negated)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.args:
        key, method = get_literal(test.args[0]), test.func.attr
        if key is NONE_SUCH or method not in ("startswith", "endswith", "__eq__", "match", "fullmatch", "search"):
            return None
        return LiteralComparison(ast.unparse(test.func.value), (key,), partial=method != "__eq__")
    if not isinstance(test, ast.Compare):
        return None
    if len(test.ops) == 1:
        return _parse_single_comparison(test.left, test.ops[0], test.comparators[0])
    return _parse_narrow_range(test)


def _parse_single_comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> LiteralComparison | None:
    if not isinstance(op, ast.Eq | ast.Is | ast.In | ast.NotEq | ast.IsNot | ast.NotIn):
        return None
    negated = isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn)
    is_containment = isinstance(op, ast.In | ast.NotIn)
    for subject, literal in ((left, right), (right, left)):
        value = get_literal(literal)
        # `n % 3` is a property of the argument, not the argument itself.
        if value is NONE_SUCH or isinstance(subject, ast.BinOp | ast.BoolOp | ast.Compare | ast.Constant):
            continue
        is_multiple = isinstance(value, tuple) and (
            isinstance(subject, ast.Tuple) or (is_containment and literal is right)
        )
        keys = cast("tuple[Value, ...]", value if is_multiple else (value,))
        partial = isinstance(subject, ast.Call | ast.Subscript) or (is_containment and literal is left)
        return LiteralComparison(ast.unparse(subject), keys, negated, partial)
    return None


def _parse_narrow_range(test: ast.Compare) -> LiteralComparison | None:
    """Return a narrow range such as `999 < x < 1001` as a comparison with its numbers; None for other conditions."""
    low, high = get_literal(test.left), get_literal(test.comparators[-1])
    if len(test.ops) != 2 or not isinstance(low, int) or not isinstance(high, int) or not 0 <= high - low <= _NARROW:
        return None
    return LiteralComparison(ast.unparse(test.comparators[0]), tuple(range(low, high + 1)))
