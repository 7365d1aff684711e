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
    assigned_value,
    called_name,
    column_values,
    parametrized_values,
    position_of,
    target_names,
)
from redstart.toolkit.languages.python.read_tests import TestFile, catches
from redstart.toolkit.languages.python.syntax import Function

MOST_ROWS = 12
"""The maximum number of table rows that are used."""
_ROUNDS = 3
"""How many times a name may be replaced by another name."""
_BUILTINS = frozenset(dir(builtins))
_OF_TEXT = frozenset(dir(str))
_EQUALITIES = frozenset(
    {"assertEqual", "assertEquals", "assertNotEqual", "assertListEqual", "assertDictEqual", "assertTupleEqual"}
    | {"assertSetEqual", "assertMultiLineEqual", "assertSequenceEqual", "assertAlmostEqual", "assertIs", "assertIn"}
)
_CONDITIONS = frozenset({"assertTrue", "assertFalse", "assertIsNone", "assertIsNotNone"})
_RAISING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
_OF_THE_FRAME = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)

Row = Mapping[str, ast.expr]


class TestExpression(NamedTuple):
    """An expression of a test whose value the test checks."""

    function: str
    """The name of the function that it calls."""
    expression: ast.expr

    @property
    def source(self) -> str:
        return ast.unparse(self.expression)


def questions(file: TestFile, test: Function, modules: Container[str] = ()) -> list[TestExpression]:
    """List every expression that this test checks, with its locals and table rows replaced by their values.

    Expressions that need anything but the module's names, builtins and literals, or that call only the standard
    library, are left out. `modules` are the project's module names, which may hide those of the standard library.
    """
    scope = _Scope(file, test)
    foreign = frozenset(_from_library(file.tree, modules))
    asked: dict[str, TestExpression] = {}
    for place in file.places(test):
        for side in _asked(place.statement, foreign):
            for expression in islice(scope.inlined(side), MOST_ROWS):
                if (function := _function_of(expression, foreign)) and scope.is_free(expression):
                    question = TestExpression(function, expression)
                    asked.setdefault(question.source, question)
    return list(asked.values())


def _function_of(expression: ast.expr, foreign: frozenset[str]) -> str:
    """Return the name of the outermost call into the project; empty if there is none."""
    calls = (node for node in ast.walk(expression) if is_project_call(node) and _root(node) not in foreign)
    return next((called_name(call.func) for call in calls), "")


def _root(node: ast.expr) -> str:
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
        return node.func.attr not in _OF_TEXT
    return isinstance(node.func, ast.Name) and node.func.id not in _BUILTINS


def _asked(statement: ast.stmt, foreign: frozenset[str]) -> Iterator[ast.expr]:
    match statement:
        case ast.Assert(test=condition):
            yield from _in_condition(condition, foreign)
        case ast.Expr(value=ast.Call(func=function, args=[first, second, *_])) if called_name(function) in _EQUALITIES:
            yield from _of_two(first, second, foreign)
        case ast.Expr(value=ast.Call(func=function, args=[first, *_])) if called_name(function) in _CONDITIONS:
            yield from _in_condition(first, foreign)
        case ast.Expr(value=ast.Call(func=function, args=[_, called, *rest], keywords=keywords)) if (
            called_name(function) in _RAISING
        ):
            yield ast.Call(func=called, args=rest, keywords=keywords)
        case ast.With(
            items=[ast.withitem(context_expr=context)], body=[ast.Expr(value=value) | ast.Assign(value=value)]
        ):
            if catches(context) and called_name(getattr(context, "func", context)) in _RAISING:
                yield value
        case _:
            return


def _in_condition(condition: ast.expr, foreign: frozenset[str]) -> Iterator[ast.expr]:
    match condition:
        case ast.Compare(left=left, comparators=[right]):
            yield from _of_two(left, right, foreign)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _in_condition(value, foreign)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _in_condition(operand, foreign)
        case _:
            yield condition


def _of_two(first: ast.expr, second: ast.expr, foreign: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the side that is checked; nothing if both or neither are, since then no expected value is known."""
    asking = [side for side in (first, second) if not _is_expected(side)]
    if len(asking) == 1:
        yield asking[0]
        return
    calling = [side for side in asking if _function_of(side, foreign)]
    if len(calling) == 1:
        yield calling[0]


def _is_expected(side: ast.expr) -> bool:
    """Whether a side consists of literals, also inside a class or a call such as `Span(3, 7)` or `approx(0.1)`."""
    if isinstance(side, ast.Call):
        name = called_name(side.func)
        return (name[:1].isupper() or name == "approx") and all(map(_is_expected, side.args))
    return not any(isinstance(node, ast.Call | ast.Name | ast.Attribute) for node in ast.walk(side))


class _Scope:
    """The names that a test can see."""

    def __init__(self, file: TestFile, test: Function) -> None:
        self._file, self._test = file, test
        inside = list(ast.walk(test))
        arguments = {node.arg for node in inside if isinstance(node, ast.arg)}
        stored = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        defined = {node.name for node in inside if isinstance(node, Function | ast.ClassDef) and node is not test}
        imported = {
            _bound(alias) for node in inside if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names
        }
        self._locals = arguments | stored | defined | imported
        self._globals = set(_module_names(file.tree.body))

    def inlined(self, side: ast.expr) -> Iterator[ast.expr]:
        """Yield the expression once for each row of the tables that it takes values from."""
        names = _loaded(side)
        groups: list[list[Row]] = []
        for source in (
            *self._test.decorator_list,
            *(node for node in ast.walk(self._test) if isinstance(node, ast.For)),
        ):
            rows = self._rows(source, names)
            if rows:
                groups.append(rows)
        for rows in product(*groups):
            values = {name: value for row in rows for name, value in row.items()}
            yield self._with_values(side, values)

    def _rows(self, source: ast.expr | ast.For, names: set[str]) -> list[Row]:
        columns: dict[str, list[ast.expr]] = {}
        for name in sorted(names):
            values = self._looped(source, name) if isinstance(source, ast.For) else self._parametrized(source, name)
            if values:
                columns[name] = values
        return [dict(zip(columns, row, strict=False)) for row in zip(*columns.values(), strict=False)]

    def _parametrized(self, decorator: ast.expr, name: str) -> list[ast.expr]:
        match decorator:
            case ast.Call(func=function, args=[names, ast.Name(id=table), *_], keywords=_):
                value = assigned_value(self._file.tree.body, table)
                return parametrized_values(ast.Call(function, [names, value], []), name) if value is not None else []
            case _:
                return parametrized_values(decorator, name)

    def _looped(self, loop: ast.For, name: str) -> list[ast.expr]:
        if name not in target_names(loop.target):
            return []
        table: ast.expr | None = loop.iter
        if isinstance(table, ast.Name):
            table = assigned_value(self._test.body, table.id) or assigned_value(self._file.tree.body, table.id)
        return column_values(table, position_of(loop.target, name)) if table is not None else []

    def _with_values(self, side: ast.expr, values: Row) -> ast.expr:
        expression = side
        for _ in range(_ROUNDS):
            expression = _Inline(lambda name: values.get(name) or self._value(name)).visit(deepcopy(expression))
        return expression

    def _value(self, name: str) -> ast.expr | None:
        """Return the value of a name that is set once: a literal, or a call whose result is used once; else None."""
        if name in self._locals:
            value = assigned_value(self._test.body, name)
            stores = [node for node in ast.walk(self._test) if _is_name(node, name, ast.Store)]
            loads = [node for node in ast.walk(self._test) if _is_name(node, name, ast.Load)]
            once = len(stores) == 1 and (len(loads) == 1 or (value is not None and isinstance(value, ast.Constant)))
            return value if once else None
        value = assigned_value(self._file.tree.body, name)
        return value if value is not None and _is_literal(value) else None

    def is_free(self, expression: ast.expr) -> bool:
        """Whether an expression needs nothing from the test's frame."""
        nodes = list(ast.walk(expression))
        if any(isinstance(node, _OF_THE_FRAME) for node in nodes):
            return False
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        names = _loaded(expression) - bound
        return not names & self._locals and ("*" in self._globals or names <= self._globals | _BUILTINS)


class _Inline(ast.NodeTransformer):
    def __init__(self, value: Callable[[str], ast.expr | None]) -> None:
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._value(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if value is None else deepcopy(value)


def _module_names(body: Sequence[ast.stmt]) -> Iterator[str]:
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


def _loaded(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _is_name(node: ast.AST, name: str, context: type[ast.expr_context]) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, context)


def _is_literal(value: ast.expr) -> bool:
    return not any(isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.JoinedStr) for node in ast.walk(value))
