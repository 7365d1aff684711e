"""Read a module statement by statement and report every call and every string that is built, with known values."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from redstart.toolkit.languages.python.checks.source import PythonSource
from redstart.toolkit.languages.python.checks.texts import KnownText, elsewhere, item_of
from redstart.toolkit.languages.python.checks.values import FunctionScope, ModuleValues
from redstart.toolkit.languages.python.syntax import Function

MOST_STATEMENTS = 40_000
"""The maximum number of statements read in one module, so that generated code does not slow down an audit."""

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_GROWS = frozenset({"append", "extend", "insert", "add", "appendleft", "write", "update", "setdefault"})


class CallVisitor(Protocol):
    def call(self, node: ast.Call, scope: FunctionScope) -> None:
        """Visit a call, with the values of names at that place."""
        ...

    def made(self, node: ast.expr, scope: FunctionScope) -> None:
        """Visit a value that is assigned or returned."""
        ...


@dataclass
class Reader:
    source: PythonSource
    seen: CallVisitor
    module: ModuleValues = field(init=False)
    left: int = MOST_STATEMENTS
    _known: dict[tuple[object, ...], KnownText | None] = field(
        default_factory=dict[tuple[object, ...], KnownText | None]
    )
    _quiet: int = 0
    _returns: list[KnownText] = field(default_factory=list[KnownText])

    def __post_init__(self) -> None:
        self.module = ModuleValues(self.source.names, follow=self._follow)
        classes: list[ast.ClassDef] = []
        for node in (*self.source.all(ast.FunctionDef), *self.source.all(ast.AsyncFunctionDef)):
            self.module.functions[node.name] = node
        classes += self.source.all(ast.ClassDef)
        self.module.choices = frozenset(cls.name for cls in classes if any(map(self._is_enumeration, cls.bases)))

    def _is_enumeration(self, base: ast.expr) -> bool:
        return self.module.names.dotted(base).rpartition(".")[2] in ("Enum", "StrEnum", "IntEnum", "Flag")

    def read(self) -> None:
        """Read the whole module."""
        tree = self.source.tree
        if tree is None:
            return
        top = FunctionScope(self.module)
        self._quiet += 1
        self._block([statement for statement in tree.body if isinstance(statement, ast.Assign | ast.AnnAssign)], top)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._attributes(node, top)
        self._quiet -= 1
        self._block(tree.body, top)

    def _attributes(self, node: ast.ClassDef, top: FunctionScope) -> None:
        """Read the values that a class's body and methods assign to its attributes."""
        found = self.module.attributes
        for item in node.body:
            for target, value in _assigned(item):
                if isinstance(target, ast.Name):
                    found[target.id] = top.read(value)
        for item in node.body:
            if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inner = self._entered(top, item)
            for statement in ast.walk(item):
                for target, value in _assigned(statement):
                    if isinstance(target, ast.Name):
                        inner.bind(target, inner.read(value))
                    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        now = inner.read(value)
                        before = found.get(target.attr)
                        found[target.attr] = before.either(now) if before is not None else now

    # -- functions -------------------------------------------------------------------------------------------------

    def _entered(self, scope: FunctionScope, function: Function | ast.Lambda) -> FunctionScope:
        inner = scope.copy()
        given = function.args
        for posonlyarg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if posonlyarg is None:
                continue
            inner.held[posonlyarg.arg] = KnownText(None, -1)
            inner.chosen.discard(posonlyarg.arg)
            if (
                posonlyarg.annotation is not None
                and self.module.names.dotted(posonlyarg.annotation) in self.module.choices
            ):
                inner.chosen.add(posonlyarg.arg)
        return inner

    def _follow(self, scope: FunctionScope, function: Function, call: ast.Call) -> KnownText | None:
        names = [posonlyarg.arg for posonlyarg in (*function.args.posonlyargs, *function.args.args)]
        if names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
            names = names[1:]
        given = dict(zip(names, (scope.read(item) for item in call.args), strict=False))
        given |= {keyword.arg: scope.read(keyword.value) for keyword in call.keywords if keyword.arg}
        key = (function.name, function.lineno, *sorted(given.items()))
        if key not in self._known:
            self._known[key] = None  # a function that calls itself
            inner = self._entered(FunctionScope(self.module, dict(scope.held), scope.depth + 1), function)
            for name, default in _defaults(function):
                inner.held[name] = scope.read(default)
            inner.held |= given
            kept, self._returns = self._returns, []
            self._quiet += 1
            self._block(function.body, inner)
            self._quiet -= 1
            found, self._returns = self._returns, kept
            self._known[key] = _either(found)
        return self._known[key]

    # -- statements ------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt], scope: FunctionScope) -> bool:
        """Read statements in order. True if the code after them is unreachable."""
        for statement in statements:
            self.left -= 1
            if self.left < 0:
                return True
            if self._statement(statement, scope):
                return True
        return False

    def _statement(self, node: ast.stmt, scope: FunctionScope) -> bool:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not self._quiet:
                    kept, self._returns = self._returns, []
                    self._block(node.body, self._entered(scope, node))
                    self._returns = kept
            case ast.ClassDef():
                if not self._quiet:
                    self._block(node.body, scope.copy())
            case ast.If():
                return self._if(node, scope)
            case ast.For() | ast.AsyncFor():
                self._expressions(node.iter, scope)
                self._loop(node, scope, item_of(scope.read(node.iter), node.iter))
            case ast.While():
                self._expressions(node.test, scope)
                self._loop(node, scope, None)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._expressions(item.context_expr, scope)
                    if item.optional_vars is not None:
                        scope.bind(item.optional_vars, elsewhere(node))
                return self._block(node.body, scope)
            case ast.Try() | ast.TryStar():
                self._try(node, scope)
            case ast.Match():
                self._expressions(node.subject, scope)
                branches = [scope.copy() for _ in node.cases]
                ends = [self._block(case.body, entry) for case, entry in zip(node.cases, branches, strict=True)]
                scope.merge(scope, *(branch for branch, end in zip(branches, ends, strict=True) if not end))
            case _:
                self._simple(node, scope)
                return isinstance(node, _ENDS)
        return False

    def _simple(self, node: ast.stmt, scope: FunctionScope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expressions(child, scope)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            before = scope.held.get(node.target.id, elsewhere(node))
            more = scope.read(node.value)
            grown = before.either(more) if before.items or more.items else before.plus(more)
            scope.bind(node.target, grown)
            self._made(node.target, scope)
        elif isinstance(node, ast.Return) and node.value is not None:
            self._returns.append(scope.read(node.value))
            self._made(node.value, scope)
        elif isinstance(node, ast.Assert):
            scope.believe(node.test, true=True)
        elif isinstance(node, ast.Expr):
            self._grown(node.value, scope)
        for target, value in _assigned(node):
            scope.bind(target, scope.read(value))
            self._made(value, scope)

    def _grown(self, node: ast.expr, scope: FunctionScope) -> None:
        """Add the value to a collection's items, as in `clauses.append(...)`."""
        if isinstance(node, ast.Yield) and node.value is not None:
            self._returns.append(KnownText(None, 0, scope.read(node.value)))
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            return
        owner = node.func.value
        if node.func.attr not in _GROWS or not isinstance(owner, ast.Name):
            return
        before, more = scope.held.get(owner.id, KnownText(None)), scope.read(node.args[-1])
        if node.func.attr == "write":
            scope.held[owner.id] = before.plus(more) if before.text is not None else before
            return
        if node.func.attr in ("extend", "update"):
            more = item_of(more, node)
        items = before.items.either(more) if before.items is not None else more
        scope.held[owner.id] = KnownText(None, 0, items)

    def _if(self, node: ast.If, scope: FunctionScope) -> bool:
        self._expressions(node.test, scope)
        then, other = scope.copy(), scope.copy()
        then.believe(node.test, true=True)
        other.believe(node.test, true=False)
        ends = self._block(node.body, then), self._block(node.orelse, other)
        scope.merge(*(item for item, end in zip((then, other), ends, strict=True) if not end))
        return all(ends)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: FunctionScope, item: KnownText | None) -> None:
        inner = scope.copy()
        if not isinstance(node, ast.While) and item is not None:
            inner.bind(node.target, item)
        self._quiet += 1
        self._block(node.body, inner)
        self._quiet -= 1
        inner.merge(scope, inner)
        if not isinstance(node, ast.While) and item is not None:
            inner.bind(node.target, item)
        self._block(node.body, inner)
        scope.merge(scope, inner)
        self._block(node.orelse, scope)

    def _try(self, node: ast.Try | ast.TryStar, scope: FunctionScope) -> None:
        before = scope.copy()
        self._block(node.body, scope)
        self._block(node.orelse, scope)
        branches = [scope.copy()]
        for handler in node.handlers:
            inner = before.copy()
            if handler.name:
                inner.held[handler.name] = elsewhere(handler)
            if not self._block(handler.body, inner):
                branches.append(inner)
        scope.merge(*branches)
        self._block(node.finalbody, scope)

    # -- expressions -----------------------------------------------------------------------------------------------

    def _made(self, node: ast.expr, scope: FunctionScope) -> None:
        if not self._quiet:
            self.seen.made(node, scope)

    def _expressions(self, node: ast.expr, scope: FunctionScope) -> None:
        if self._quiet:
            return
        match node:
            case ast.Lambda():
                self._expressions(node.body, self._entered(scope, node))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                inner = scope.copy()
                for generator in node.generators:
                    self._expressions(generator.iter, inner)
                    inner.bind(generator.target, item_of(inner.read(generator.iter), generator.iter))
                    for test in generator.ifs:
                        self._expressions(test, inner)
                        inner.believe(test, true=True)
                for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                    self._expressions(part, inner)
            case _:
                if isinstance(node, ast.Call):
                    self.seen.call(node, scope)
                elif isinstance(node, ast.NamedExpr):
                    scope.bind(node.target, scope.read(node.value))
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.keyword):
                        self._expressions(child.value, scope)
                    elif isinstance(child, ast.expr):
                        self._expressions(child, scope)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Iterate over targets and values of an assignment, with tuples split into their elements."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        both = (ast.Tuple, ast.List)
        if isinstance(target, both) and isinstance(node.value, both) and len(target.elts) == len(node.value.elts):
            yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def _defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    given = function.args
    named = (*given.posonlyargs, *given.args)
    yield from zip((item.arg for item in named[len(named) - len(given.defaults) :]), given.defaults, strict=True)
    yield from (
        (kwonlyarg.arg, value) for kwonlyarg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value
    )


def _either(found: Sequence[KnownText]) -> KnownText | None:
    if not found:
        return None
    result = found[0]
    for item in found[1:]:
        result = result.either(item)
    return result
