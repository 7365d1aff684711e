"""Find the expected literals of a Python comparison, also behind a name, and change each of them."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.toolkit.languages.python.statement_offsets import SourceEdit, TestFile
from redstart.toolkit.languages.python.syntax import Function

MOST_LEAVES = 3
"""The maximum number of parts of one expected value that are altered, one at a time."""
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_APPROXIMATE = frozenset({"approx"})


class ChangedLiteral(NamedTuple):
    edit: SourceEdit
    is_certain: bool
    """Whether the comparison uses the literal itself, not a project object built from it."""


def change_expected_literals(file: TestFile, test: Function, operands: Sequence[ast.expr]) -> Iterator[ChangedLiteral]:
    """Change what an equality expects: the last side that consists only of literals."""
    for operand in reversed(operands):
        changes = list(_change_operand(file, test, operand))
        if changes:
            yield from changes[:MOST_LEAVES]
            return


def change_subtracted_numbers(file: TestFile, test: Function, operands: Sequence[ast.expr]) -> Iterator[SourceEdit]:
    """Change numbers in a bounded difference, as in `abs(f(x) - 3) < 0.1`, to values that are far off."""
    for node in (node for expression in operands for node in ast.walk(expression)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            for operand in (node.left, node.right):
                values = _find_values(file, test, operand.id) if isinstance(operand, ast.Name) else [operand]
                for value in values[:MOST_LEAVES]:
                    number = value.value if isinstance(value, ast.Constant) else None
                    if isinstance(number, int | float):
                        yield file.replace(value, value, repr(3 * number + 1009).encode())


def _change_operand(file: TestFile, test: Function, operand: ast.expr) -> Iterator[ChangedLiteral]:
    if isinstance(operand, ast.Name):
        for value in _find_values(file, test, operand.id):
            yield from (
                ChangedLiteral(edit, is_certain) for edit, is_certain in _change_leaves(file, value, is_certain=True)
            )
        return
    yield from (ChangedLiteral(edit, is_certain) for edit, is_certain in _change_leaves(file, operand, is_certain=True))


def _change_leaves(file: TestFile, node: ast.expr, *, is_certain: bool) -> Iterator[tuple[SourceEdit, bool]]:
    match node:
        case ast.Constant():
            if (new := _change_literal(file.get_source(node), node.value, in_call=not is_certain)) is not None:
                yield file.replace(node, node, new), is_certain
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant() as constant):
            yield from _change_leaves(file, constant, is_certain=is_certain)
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            yield file.replace(node, node, _FILLED_COLLECTIONS[type(node)]), is_certain
        case ast.List() | ast.Tuple() | ast.Set():
            for element in node.elts:
                yield from _change_leaves(file, element, is_certain=is_certain)
        case ast.Dict():
            for value in node.values:
                yield from _change_leaves(file, value, is_certain=is_certain)
        case ast.Call(func=function) if get_called_name(function) in _APPROXIMATE and node.args:
            yield from _change_leaves(file, node.args[0], is_certain=is_certain)
        case ast.Call(func=function) if get_called_name(function)[:1].isupper():
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _change_leaves(file, argument, is_certain=False)
        case _:
            return


_FILLED_COLLECTIONS = {ast.List: b'["~"]', ast.Tuple: b'("~",)', ast.Dict: b'{"~": 1}'}


def get_called_name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _change_literal(source: bytes, value: object, *, in_call: bool) -> bytes | None:
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


def _find_values(file: TestFile, test: Function, name: str) -> list[ast.expr]:
    """Find the literals that a name stands for if only this one comparison uses the name."""
    for decorator in test.decorator_list:
        rows = find_parametrized_values(decorator, name)
        if rows and _count_uses(test, name) == 1:
            return rows
    for node in ast.walk(test):
        if isinstance(node, ast.For) and name in collect_target_names(node.target) and _count_uses(test, name) == 1:
            table = node.iter
            if isinstance(table, ast.Name):
                table = find_assigned_value(test.body, table.id) or find_assigned_value(file.tree.body, table.id)
            return list_column_values(table, find_position(node.target, name)) if table is not None else []
    if (value := find_assigned_value(test.body, name)) is not None:
        return [value] if _count_uses(test, name) == 1 else []
    if (value := find_assigned_value(file.tree.body, name)) is not None:
        return [value] if _count_uses(file.tree, name) == 1 else []
    return []


def find_parametrized_values(decorator: ast.expr, name: str) -> list[ast.expr]:
    match decorator:
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, table, *_]):
            pass
        case _:
            return []
    match names:
        case ast.Constant(value=str() as text):
            parameter_names = [part.strip() for part in text.split(",") if part.strip()]
        case ast.List() | ast.Tuple():
            parameter_names = [str(getattr(element, "value", "")) for element in names.elts]
        case _:
            return []
    if name not in parameter_names:
        return []
    return list_column_values(table, (parameter_names.index(name),) if len(parameter_names) > 1 else ())


def list_column_values(table: ast.expr, position: tuple[int, ...]) -> list[ast.expr]:
    """List the values of one column of a literal table, row by row; `position` is the path of indexes into a row."""
    rows = table.elts if isinstance(table, ast.List | ast.Tuple | ast.Set) else []
    values: list[ast.expr] = []
    for row in rows:
        value: ast.expr | None = row
        if isinstance(value, ast.Call) and get_called_name(value.func) == "param":
            value = ast.Tuple(elts=value.args) if position else (value.args[0] if value.args else None)
        for index in position:
            inside = value.elts if isinstance(value, ast.List | ast.Tuple) else []
            value = inside[index] if index < len(inside) else None
        if value is not None:
            values.append(value)
    return values


def find_position(target: ast.expr, name: str) -> tuple[int, ...]:
    if isinstance(target, ast.Tuple | ast.List):
        for index, element in enumerate(target.elts):
            if name in collect_target_names(element):
                return (index, *find_position(element, name))
    return ()


def collect_target_names(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def find_assigned_value(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """Return the value assigned to a name in these statements; None unless there is exactly one assignment."""
    values = [
        statement.value
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name) and target.id == name
    ]
    return values[0] if len(values) == 1 else None


def _count_uses(scope: ast.AST, name: str) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in ast.walk(scope)
    )
