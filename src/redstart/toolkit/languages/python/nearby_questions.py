"""Find the expressions that a Python test checks and that can be evaluated alone, in the test module's namespace."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import islice, product
from typing import NamedTuple, TypeGuard

from redstart.toolkit.languages.python.alter_literals import (
    collect_target_names,
    find_assigned_value,
    find_parametrized_values,
    find_position,
    get_called_name,
    list_column_values,
)
from redstart.toolkit.languages.python.statement_offsets import TestFile, can_catch
from redstart.toolkit.languages.python.syntax import Function

MOST_ROWS = 12
"""The maximum number of table rows that are used."""
_ROUNDS = 3
"""How many times a name may be replaced by another name."""
_BUILTINS = frozenset(dir(builtins))
_STRING_METHODS = frozenset(dir(str))
_EQUALITIES = frozenset(
    {"assertEqual", "assertEquals", "assertNotEqual", "assertListEqual", "assertDictEqual", "assertTupleEqual"}
    | {"assertSetEqual", "assertMultiLineEqual", "assertSequenceEqual", "assertAlmostEqual", "assertIs", "assertIn"}
)
_CONDITIONS = frozenset({"assertTrue", "assertFalse", "assertIsNone", "assertIsNotNone"})
_RAISING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
_FRAME_NODES = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)

Row = Mapping[str, ast.expr]


class TestExpression(NamedTuple):
    """An expression of a test whose value the test checks."""

    function: str
    """The name of the function that it calls."""
    expression: ast.expr

    @property
    def source(self) -> str:
        return ast.unparse(self.expression)


def find_test_expressions(file: TestFile, test: Function, modules: Container[str] = ()) -> list[TestExpression]:
    """List every expression that this test checks, with its locals and table rows replaced by their values.

    Expressions that need anything but the module's names, builtins and literals, or that call only the standard
    library, are left out. `modules` are the project's module names, which may hide those of the standard library.
    """
    scope = _Scope(file, test)
    foreign = frozenset(_from_library(file.tree, modules))
    expressions: dict[str, TestExpression] = {}
    for place in file.find_statements(test):
        for checked in _find_checked_expressions(place.statement, foreign):
            for expression in islice(scope.inline_values(checked), MOST_ROWS):
                if (function := _find_called_function(expression, foreign)) and scope.is_free(expression):
                    question = TestExpression(function, expression)
                    expressions.setdefault(question.source, question)
    return list(expressions.values())


def _find_called_function(expression: ast.expr, foreign: frozenset[str]) -> str:
    """Return the name of the outermost call into the project; empty if there is none."""
    calls = (node for node in ast.walk(expression) if is_project_call(node) and _find_root_name(node) not in foreign)
    return next((get_called_name(call.func) for call in calls), "")


def _find_root_name(node: ast.expr) -> str:
    """Return the name that a call or attribute starts with."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _from_library(tree: ast.Module, modules: Container[str]) -> Iterator[str]:
    """Iterate over the names imported from the standard library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
                top = module.split(".")[0]
                if top in sys.stdlib_module_names and top not in modules:
                    yield _bound(alias)


def is_project_call(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr not in _STRING_METHODS
    return isinstance(node.func, ast.Name) and node.func.id not in _BUILTINS


def _find_checked_expressions(statement: ast.stmt, foreign: frozenset[str]) -> Iterator[ast.expr]:
    match statement:
        case ast.Assert(test=condition):
            yield from _in_condition(condition, foreign)
        case ast.Expr(value=ast.Call(func=function, args=[first, second, *_])) if (
            get_called_name(function) in _EQUALITIES
        ):
            yield from _select_checked_operand(first, second, foreign)
        case ast.Expr(value=ast.Call(func=function, args=[first, *_])) if get_called_name(function) in _CONDITIONS:
            yield from _in_condition(first, foreign)
        case ast.Expr(value=ast.Call(func=function, args=[_, callee, *arguments], keywords=keywords)) if (
            get_called_name(function) in _RAISING
        ):
            yield ast.Call(func=callee, args=arguments, keywords=keywords)
        case ast.With(
            items=[ast.withitem(context_expr=context)], body=[ast.Expr(value=value) | ast.Assign(value=value)]
        ):
            if can_catch(context) and get_called_name(getattr(context, "func", context)) in _RAISING:
                yield value
        case _:
            return


def _in_condition(condition: ast.expr, foreign: frozenset[str]) -> Iterator[ast.expr]:
    match condition:
        case ast.Compare(left=left, comparators=[right]):
            yield from _select_checked_operand(left, right, foreign)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _in_condition(value, foreign)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _in_condition(operand, foreign)
        case _:
            yield condition


def _select_checked_operand(first: ast.expr, second: ast.expr, foreign: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the side that is checked; nothing if both or neither are, since then no expected value is known."""
    candidates = [operand for operand in (first, second) if not _is_expected(operand)]
    if len(candidates) == 1:
        yield candidates[0]
        return
    calling = [operand for operand in candidates if _find_called_function(operand, foreign)]
    if len(calling) == 1:
        yield calling[0]


def _is_expected(operand: ast.expr) -> bool:
    """Whether a side consists of literals, also inside a class or a call such as `Span(3, 7)` or `approx(0.1)`."""
    if isinstance(operand, ast.Call):
        name = get_called_name(operand.func)
        return (name[:1].isupper() or name == "approx") and all(map(_is_expected, operand.args))
    return not any(isinstance(node, ast.Call | ast.Name | ast.Attribute) for node in ast.walk(operand))


class _Scope:
    """The names that a test can see."""

    def __init__(self, file: TestFile, test: Function) -> None:
        self._file, self._test = file, test
        inside = list(ast.walk(test))
        arguments = {node.arg for node in inside if isinstance(node, ast.arg)}
        stored = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        defined_names = {node.name for node in inside if isinstance(node, Function | ast.ClassDef) and node is not test}
        imported_names = {
            _bound(alias) for node in inside if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names
        }
        self._locals = arguments | stored | defined_names | imported_names
        self._globals = set(_list_module_names(file.tree.body))

    def inline_values(self, operand: ast.expr) -> Iterator[ast.expr]:
        """Yield the expression once for each row of the tables that it takes values from."""
        names = _collect_loaded_names(operand)
        groups: list[list[Row]] = []
        for source in (
            *self._test.decorator_list,
            *(node for node in ast.walk(self._test) if isinstance(node, ast.For)),
        ):
            rows = self._list_rows(source, names)
            if rows:
                groups.append(rows)
        for rows in product(*groups):
            values = {name: value for row in rows for name, value in row.items()}
            yield self._with_values(operand, values)

    def _list_rows(self, source: ast.expr | ast.For, names: set[str]) -> list[Row]:
        columns: dict[str, list[ast.expr]] = {}
        for name in sorted(names):
            values = (
                self._find_loop_values(source, name)
                if isinstance(source, ast.For)
                else self._find_parametrized_values(source, name)
            )
            if values:
                columns[name] = values
        return [dict(zip(columns, row, strict=False)) for row in zip(*columns.values(), strict=False)]

    def _find_parametrized_values(self, decorator: ast.expr, name: str) -> list[ast.expr]:
        match decorator:
            case ast.Call(func=function, args=[names, ast.Name(id=table), *_], keywords=_):
                value = find_assigned_value(self._file.tree.body, table)
                return (
                    find_parametrized_values(ast.Call(function, [names, value], []), name) if value is not None else []
                )
            case _:
                return find_parametrized_values(decorator, name)

    def _find_loop_values(self, loop: ast.For, name: str) -> list[ast.expr]:
        if name not in collect_target_names(loop.target):
            return []
        table: ast.expr | None = loop.iter
        if isinstance(table, ast.Name):
            table = find_assigned_value(self._test.body, table.id) or find_assigned_value(
                self._file.tree.body, table.id
            )
        return list_column_values(table, find_position(loop.target, name)) if table is not None else []

    def _with_values(self, operand: ast.expr, values: Row) -> ast.expr:
        expression = operand
        for _ in range(_ROUNDS):
            expression = _Inline(lambda name: values.get(name) or self._find_value(name)).visit(deepcopy(expression))
        return expression

    def _find_value(self, name: str) -> ast.expr | None:
        """Return the value of a name that is set once: a literal, or a call whose result is used once; else None."""
        if name in self._locals:
            value = find_assigned_value(self._test.body, name)
            stores = [node for node in ast.walk(self._test) if _is_name(node, name, ast.Store)]
            loads = [node for node in ast.walk(self._test) if _is_name(node, name, ast.Load)]
            is_used_once = len(stores) == 1 and (
                len(loads) == 1 or (value is not None and isinstance(value, ast.Constant))
            )
            return value if is_used_once else None
        value = find_assigned_value(self._file.tree.body, name)
        return value if value is not None and _is_literal(value) else None

    def is_free(self, expression: ast.expr) -> bool:
        """Whether an expression needs nothing from the test's frame."""
        nodes = list(ast.walk(expression))
        if any(isinstance(node, _FRAME_NODES) for node in nodes):
            return False
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        names = _collect_loaded_names(expression) - bound
        return not names & self._locals and ("*" in self._globals or names <= self._globals | _BUILTINS)


class _Inline(ast.NodeTransformer):
    def __init__(self, value: Callable[[str], ast.expr | None]) -> None:
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._value(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if value is None else deepcopy(value)


def _list_module_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from map(_bound, names)
            case _:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        yield node.id
                    elif isinstance(node, ast.Import | ast.ImportFrom):
                        yield from map(_bound, node.names)
                    elif isinstance(node, Function | ast.ClassDef):
                        yield node.name


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _collect_loaded_names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _is_name(node: ast.AST, name: str, context: type[ast.expr_context]) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, context)


def _is_literal(value: ast.expr) -> bool:
    return not any(isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.JoinedStr) for node in ast.walk(value))
