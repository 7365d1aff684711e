"""Find the expected literals of a Python comparison, also behind a name, and change each of them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.toolkit.languages.python.read_tests import SourceEdit, TestFile
from redstart.toolkit.languages.python.syntax import Function

MOST_LEAVES = 3
"""The maximum number of parts of one expected value that are altered, one at a time."""
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_APPROXIMATE = frozenset({"approx"})


class ChangedLiteral(NamedTuple):
    edit: SourceEdit
    certain: bool
    """Whether the comparison uses the literal itself, not a project object built from it."""


def expected(file: TestFile, test: Function, sides: Sequence[ast.expr]) -> Iterator[ChangedLiteral]:
    """Change what an equality expects: the last side that consists only of literals."""
    for side in reversed(sides):
        changes = list(_of_side(file, test, side))
        if changes:
            yield from changes[:MOST_LEAVES]
            return


def subtracted(file: TestFile, test: Function, sides: Sequence[ast.expr]) -> Iterator[SourceEdit]:
    """Change numbers in a bounded difference, as in `abs(f(x) - 3) < 0.1`, to values that are far off."""
    for node in (node for side in sides for node in ast.walk(side)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            for operand in (node.left, node.right):
                values = _values_of(file, test, operand.id) if isinstance(operand, ast.Name) else [operand]
                for value in values[:MOST_LEAVES]:
                    number = value.value if isinstance(value, ast.Constant) else None
                    if isinstance(number, int | float):
                        yield file.replace(value, value, repr(3 * number + 1009).encode())


def _of_side(file: TestFile, test: Function, side: ast.expr) -> Iterator[ChangedLiteral]:
    if isinstance(side, ast.Name):
        for value in _values_of(file, test, side.id):
            yield from (ChangedLiteral(edit, certain) for edit, certain in _leaves(file, value, certain=True))
        return
    yield from (ChangedLiteral(edit, certain) for edit, certain in _leaves(file, side, certain=True))


def _leaves(file: TestFile, node: ast.expr, *, certain: bool) -> Iterator[tuple[SourceEdit, bool]]:
    match node:
        case ast.Constant():
            if (new := _other(file.source(node), node.value, in_call=not certain)) is not None:
                yield file.replace(node, node, new), certain
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant() as constant):
            yield from _leaves(file, constant, certain=certain)
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            yield file.replace(node, node, _FILLED[type(node)]), certain
        case ast.List() | ast.Tuple() | ast.Set():
            for element in node.elts:
                yield from _leaves(file, element, certain=certain)
        case ast.Dict():
            for value in node.values:
                yield from _leaves(file, value, certain=certain)
        case ast.Call(func=function) if called_name(function) in _APPROXIMATE and node.args:
            yield from _leaves(file, node.args[0], certain=certain)
        case ast.Call(func=function) if called_name(function)[:1].isupper():
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _leaves(file, argument, certain=False)
        case _:
            return


_FILLED = {ast.List: b'["~"]', ast.Tuple: b'("~",)', ast.Dict: b'{"~": 1}'}


def called_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _other(source: bytes, value: object, *, in_call: bool) -> bytes | None:
    """Return the literal's source with another value of the same type; a string is changed inside its quotes."""
    match value:
        case bool():
            return str(not value).encode()
        case int():
            return str(value + 1).encode()
        case float():
            return repr(2 * value + 1).encode() if math.isfinite(2 * value + 1) else None
        case str() | bytes():
            size = 3 if source.endswith((b'"""', b"'''")) else 1
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            mark = b"1" if in_call and _NUMBER.fullmatch(text) else b"~"
            return source[:-size] + mark + source[-size:]
        case None:
            return b'"~"'
        case _:
            return None


def _values_of(file: TestFile, test: Function, name: str) -> list[ast.expr]:
    """Find the literals that a name stands for if only this one comparison uses the name."""
    for decorator in test.decorator_list:
        rows = parametrized_values(decorator, name)
        if rows and _uses(test, name) == 1:
            return rows
    for node in ast.walk(test):
        if isinstance(node, ast.For) and name in target_names(node.target) and _uses(test, name) == 1:
            table = node.iter
            if isinstance(table, ast.Name):
                table = assigned_value(test.body, table.id) or assigned_value(file.tree.body, table.id)
            return column_values(table, position_of(node.target, name)) if table is not None else []
    if (value := assigned_value(test.body, name)) is not None:
        return [value] if _uses(test, name) == 1 else []
    if (value := assigned_value(file.tree.body, name)) is not None:
        return [value] if _uses(file.tree, name) == 1 else []
    return []


def parametrized_values(decorator: ast.expr, name: str) -> list[ast.expr]:
    match decorator:
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, table, *_]):
            pass
        case _:
            return []
    match names:
        case ast.Constant(value=str() as text):
            listed = [part.strip() for part in text.split(",") if part.strip()]
        case ast.List() | ast.Tuple():
            listed = [str(getattr(element, "value", "")) for element in names.elts]
        case _:
            return []
    if name not in listed:
        return []
    return column_values(table, (listed.index(name),) if len(listed) > 1 else ())


def column_values(table: ast.expr, position: tuple[int, ...]) -> list[ast.expr]:
    """List the values of one column of a literal table, row by row; `position` is the path of indexes into a row."""
    rows = table.elts if isinstance(table, ast.List | ast.Tuple | ast.Set) else []
    values: list[ast.expr] = []
    for row in rows:
        value: ast.expr | None = row
        if isinstance(value, ast.Call) and called_name(value.func) == "param":
            value = ast.Tuple(elts=value.args) if position else (value.args[0] if value.args else None)
        for index in position:
            inside = value.elts if isinstance(value, ast.List | ast.Tuple) else []
            value = inside[index] if index < len(inside) else None
        if value is not None:
            values.append(value)
    return values


def position_of(target: ast.expr, name: str) -> tuple[int, ...]:
    if isinstance(target, ast.Tuple | ast.List):
        for index, element in enumerate(target.elts):
            if name in target_names(element):
                return (index, *position_of(element, name))
    return ()


def target_names(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def assigned_value(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """Return the value assigned to a name in these statements; None unless there is exactly one assignment."""
    values = [
        statement.value
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    return values[0] if len(values) == 1 else None


def _uses(scope: ast.AST, name: str) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in ast.walk(scope)
    )
