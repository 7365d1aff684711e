"""Read a module statement by statement and report every call and every string that is built, with known values."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from redstart.toolkit.languages.python.checks.known_values import KnownText, create_outside_value, get_item
from redstart.toolkit.languages.python.checks.source import PythonSource
from redstart.toolkit.languages.python.checks.string_parts import FunctionScope, ModuleValues
from redstart.toolkit.languages.python.syntax import Function

MOST_STATEMENTS = 40_000
"""The maximum number of statements read in one module, so that generated code does not slow down an audit."""

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_GROWS = frozenset({"append", "extend", "insert", "add", "appendleft", "write", "update", "setdefault"})


class CallVisitor(Protocol):
    def call(self, node: ast.Call, scope: FunctionScope) -> None:
        """Visit a call, with the values of names at that place."""
        ...

    def visit_value(self, node: ast.expr, scope: FunctionScope) -> None:
        """Visit a value that is assigned or returned."""
        ...


@dataclass
class Reader:
    source: PythonSource
    visitor: CallVisitor
    module: ModuleValues = field(init=False)
    remaining_statements: int = MOST_STATEMENTS
    _call_results: dict[tuple[object, ...], KnownText | None] = field(
        default_factory=dict[tuple[object, ...], KnownText | None]
    )
    _quiet_depth: int = 0
    _returns: list[KnownText] = field(default_factory=list[KnownText])

    def __post_init__(self) -> None:
        self.module = ModuleValues(self.source.names, follow=self._follow)
        classes: list[ast.ClassDef] = []
        for node in (*self.source.iter_nodes(ast.FunctionDef), *self.source.iter_nodes(ast.AsyncFunctionDef)):
            self.module.functions[node.name] = node
        classes += self.source.iter_nodes(ast.ClassDef)
        self.module.choices = frozenset(cls.name for cls in classes if any(map(self._is_enumeration, cls.bases)))

    def _is_enumeration(self, base: ast.expr) -> bool:
        return self.module.names.get_full_name(base).rpartition(".")[2] in ("Enum", "StrEnum", "IntEnum", "Flag")

    def read(self) -> None:
        """Read the whole module."""
        tree = self.source.tree
        if tree is None:
            return
        top = FunctionScope(self.module)
        self._quiet_depth += 1
        self._block([statement for statement in tree.body if isinstance(statement, ast.Assign | ast.AnnAssign)], top)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._read_attributes(node, top)
        self._quiet_depth -= 1
        self._block(tree.body, top)

    def _read_attributes(self, node: ast.ClassDef, top: FunctionScope) -> None:
        """Read the values that a class's body and methods assign to its attributes."""
        attributes = self.module.attributes
        for item in node.body:
            for target, value in _list_assignments(item):
                if isinstance(target, ast.Name):
                    attributes[target.id] = top.read(value)
        for item in node.body:
            if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inner_scope = self._enter_function(top, item)
            for statement in ast.walk(item):
                for target, value in _list_assignments(statement):
                    if isinstance(target, ast.Name):
                        inner_scope.bind(target, inner_scope.read(value))
                    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        new_value = inner_scope.read(value)
                        previous = attributes.get(target.attr)
                        attributes[target.attr] = previous.combine(new_value) if previous is not None else new_value

    # -- functions -------------------------------------------------------------------------------------------------

    def _enter_function(self, scope: FunctionScope, function: Function | ast.Lambda) -> FunctionScope:
        inner_scope = scope.copy()
        parameters = function.args
        for posonlyarg in (
            *parameters.posonlyargs,
            *parameters.args,
            *parameters.kwonlyargs,
            parameters.vararg,
            parameters.kwarg,
        ):
            if posonlyarg is None:
                continue
            inner_scope.known_values[posonlyarg.arg] = KnownText(None, -1)
            inner_scope.enum_parameters.discard(posonlyarg.arg)
            if (
                posonlyarg.annotation is not None
                and self.module.names.get_full_name(posonlyarg.annotation) in self.module.choices
            ):
                inner_scope.enum_parameters.add(posonlyarg.arg)
        return inner_scope

    def _follow(self, scope: FunctionScope, function: Function, call: ast.Call) -> KnownText | None:
        names = [posonlyarg.arg for posonlyarg in (*function.args.posonlyargs, *function.args.args)]
        if names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
            names = names[1:]
        arguments = dict(zip(names, (scope.read(item) for item in call.args), strict=False))
        arguments |= {keyword.arg: scope.read(keyword.value) for keyword in call.keywords if keyword.arg}
        key = (function.name, function.lineno, *sorted(arguments.items()))
        if key not in self._call_results:
            self._call_results[key] = None  # a function that calls itself
            inner_scope = self._enter_function(
                FunctionScope(self.module, dict(scope.known_values), scope.depth + 1), function
            )
            for name, default in _list_defaults(function):
                inner_scope.known_values[name] = scope.read(default)
            inner_scope.known_values |= arguments
            saved_returns, self._returns = self._returns, []
            self._quiet_depth += 1
            self._block(function.body, inner_scope)
            self._quiet_depth -= 1
            returns, self._returns = self._returns, saved_returns
            self._call_results[key] = _combine_values(returns)
        return self._call_results[key]

    # -- statements ------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt], scope: FunctionScope) -> bool:
        """Read statements in order. True if the code after them is unreachable."""
        for statement in statements:
            self.remaining_statements -= 1
            if self.remaining_statements < 0:
                return True
            if self._read_statement(statement, scope):
                return True
        return False

    def _read_statement(self, node: ast.stmt, scope: FunctionScope) -> bool:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not self._quiet_depth:
                    saved_returns, self._returns = self._returns, []
                    self._block(node.body, self._enter_function(scope, node))
                    self._returns = saved_returns
            case ast.ClassDef():
                if not self._quiet_depth:
                    self._block(node.body, scope.copy())
            case ast.If():
                return self._read_if(node, scope)
            case ast.For() | ast.AsyncFor():
                self._read_expressions(node.iter, scope)
                self._read_loop(node, scope, get_item(scope.read(node.iter), node.iter))
            case ast.While():
                self._read_expressions(node.test, scope)
                self._read_loop(node, scope, None)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._read_expressions(item.context_expr, scope)
                    if item.optional_vars is not None:
                        scope.bind(item.optional_vars, create_outside_value(node))
                return self._block(node.body, scope)
            case ast.Try() | ast.TryStar():
                self._try(node, scope)
            case ast.Match():
                self._read_expressions(node.subject, scope)
                branches = [scope.copy() for _ in node.cases]
                ends = [self._block(case.body, entry) for case, entry in zip(node.cases, branches, strict=True)]
                scope.merge(scope, *(branch for branch, end in zip(branches, ends, strict=True) if not end))
            case _:
                self._read_simple_statement(node, scope)
                return isinstance(node, _ENDS)
        return False

    def _read_simple_statement(self, node: ast.stmt, scope: FunctionScope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._read_expressions(child, scope)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            previous = scope.known_values.get(node.target.id, create_outside_value(node))
            added = scope.read(node.value)
            combined = previous.combine(added) if previous.items or added.items else previous.concatenate(added)
            scope.bind(node.target, combined)
            self._visit_value(node.target, scope)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._returns.append(scope.read(node.value))
            self._visit_value(node.value, scope)
        elif isinstance(node, ast.Assert):
            scope.assume(node.test, is_true=True)
        elif isinstance(node, ast.Expr):
            self._add_items(node.value, scope)
        for target, value in _list_assignments(node):
            scope.bind(target, scope.read(value))
            self._visit_value(value, scope)

    def _add_items(self, node: ast.expr, scope: FunctionScope) -> None:
        """Add the value to a collection's items, as in `clauses.append(...)`."""
        if isinstance(node, ast.Yield) and node.value is not None:
            self._returns.append(KnownText(None, 0, scope.read(node.value)))
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            return
        owner = node.func.value
        if node.func.attr not in _GROWS or not isinstance(owner, ast.Name):
            return
        previous, added = scope.known_values.get(owner.id, KnownText(None)), scope.read(node.args[-1])
        if node.func.attr == "write":
            scope.known_values[owner.id] = previous.concatenate(added) if previous.text is not None else previous
            return
        if node.func.attr in ("extend", "update"):
            added = get_item(added, node)
        items = previous.items.combine(added) if previous.items is not None else added
        scope.known_values[owner.id] = KnownText(None, 0, items)

    def _read_if(self, node: ast.If, scope: FunctionScope) -> bool:
        self._read_expressions(node.test, scope)
        then_scope, else_scope = scope.copy(), scope.copy()
        then_scope.assume(node.test, is_true=True)
        else_scope.assume(node.test, is_true=False)
        ends = self._block(node.body, then_scope), self._block(node.orelse, else_scope)
        scope.merge(*(item for item, end in zip((then_scope, else_scope), ends, strict=True) if not end))
        return all(ends)

    def _read_loop(
        self, node: ast.For | ast.AsyncFor | ast.While, scope: FunctionScope, item: KnownText | None
    ) -> None:
        inner_scope = scope.copy()
        if not isinstance(node, ast.While) and item is not None:
            inner_scope.bind(node.target, item)
        self._quiet_depth += 1
        self._block(node.body, inner_scope)
        self._quiet_depth -= 1
        inner_scope.merge(scope, inner_scope)
        if not isinstance(node, ast.While) and item is not None:
            inner_scope.bind(node.target, item)
        self._block(node.body, inner_scope)
        scope.merge(scope, inner_scope)
        self._block(node.orelse, scope)

    def _try(self, node: ast.Try | ast.TryStar, scope: FunctionScope) -> None:
        start_scope = scope.copy()
        self._block(node.body, scope)
        self._block(node.orelse, scope)
        branches = [scope.copy()]
        for handler in node.handlers:
            handler_scope = start_scope.copy()
            if handler.name:
                handler_scope.known_values[handler.name] = create_outside_value(handler)
            if not self._block(handler.body, handler_scope):
                branches.append(handler_scope)
        scope.merge(*branches)
        self._block(node.finalbody, scope)

    # -- expressions -----------------------------------------------------------------------------------------------

    def _visit_value(self, node: ast.expr, scope: FunctionScope) -> None:
        if not self._quiet_depth:
            self.visitor.visit_value(node, scope)

    def _read_expressions(self, node: ast.expr, scope: FunctionScope) -> None:
        if self._quiet_depth:
            return
        match node:
            case ast.Lambda():
                self._read_expressions(node.body, self._enter_function(scope, node))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                inner_scope = scope.copy()
                for generator in node.generators:
                    self._read_expressions(generator.iter, inner_scope)
                    inner_scope.bind(generator.target, get_item(inner_scope.read(generator.iter), generator.iter))
                    for test in generator.ifs:
                        self._read_expressions(test, inner_scope)
                        inner_scope.assume(test, is_true=True)
                for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                    self._read_expressions(part, inner_scope)
            case _:
                if isinstance(node, ast.Call):
                    self.visitor.call(node, scope)
                elif isinstance(node, ast.NamedExpr):
                    scope.bind(node.target, scope.read(node.value))
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.keyword):
                        self._read_expressions(child.value, scope)
                    elif isinstance(child, ast.expr):
                        self._read_expressions(child, scope)


def _list_assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Iterate over targets and values of an assignment, with tuples split into their elements."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        sequence_types = (ast.Tuple, ast.List)
        if (
            isinstance(target, sequence_types)
            and isinstance(node.value, sequence_types)
            and len(target.elts) == len(node.value.elts)
        ):
            yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def _list_defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    parameters = function.args
    positional = (*parameters.posonlyargs, *parameters.args)
    yield from zip(
        (item.arg for item in positional[len(positional) - len(parameters.defaults) :]),
        parameters.defaults,
        strict=True,
    )
    yield from (
        (kwonlyarg.arg, value)
        for kwonlyarg, value in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        if value
    )


def _combine_values(values: Sequence[KnownText]) -> KnownText | None:
    if not values:
        return None
    result = values[0]
    for item in values[1:]:
        result = result.combine(item)
    return result
