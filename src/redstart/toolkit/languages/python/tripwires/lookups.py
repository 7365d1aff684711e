"""Tripwires on look-ups by a text or a hash of the arguments, in a table that the code itself never fills.

An honest cache has such keys too, but it writes to its table; what only reads has been told the answers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from redstart.toolkit.honesty.tripwires.protocol import Mark
from redstart.toolkit.languages.python.syntax import Function
from redstart.toolkit.languages.python.tripwires.answers import SHARE, disguised, is_expected, looks_hashed
from redstart.toolkit.languages.python.tripwires.literals import NONE_SUCH, Asked, Row, bits, is_tiny, value_of
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import Module, imports

_HASHES = frozenset(
    [
        "hash",
        "crc32",
        "adler32",
        "md5",
        "sha1",
        "sha224",
        "sha256",
        "sha384",
        "sha512",
        "sha3_256",
        "blake2b",
        "blake2s",
        "hexdigest",
        "digest",
    ]
)
_WRITES_OUT = frozenset({"repr", "ascii", "dumps", "pformat", "saferepr"})
_JOINS = frozenset({"str", "format", "join"})
_FROM_FILES = frozenset(
    [
        "load",
        "loads",
        "safe_load",
        "open",
        "read",
        "read_text",
        "read_bytes",
        "literal_eval",
        "get_data",
        "reader",
        "DictReader",
        "readlines",
    ]
)
_FILLS = frozenset(
    [
        "update",
        "setdefault",
        "__setitem__",
        "pop",
        "popitem",
        "clear",
        "append",
        "add",
        "insert",
        "extend",
        "move_to_end",
    ]
)
_DEPTH = 4
"""How many names are followed, so that a chain of them ends."""


class Origin(NamedTuple):
    """Where a table comes from; `rows` are the literal ones, as far as they can be read."""

    is_file: bool
    rows: tuple[Row, ...] = ()


class Lookup(NamedTuple):
    node: ast.AST
    function: str
    is_hashed: bool
    is_compound: bool
    """Whether several arguments, or a whole structure, make one key."""
    origin: Origin

    @property
    def key(self) -> str:
        return f"{self.function} {ast.dump(self.node)}"


class _File:
    """What the names of one file were assigned, which functions it has and which tables it fills."""

    def __init__(self, module: Module, others: Mapping[str, _File]) -> None:
        self.others = others
        self.values: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, Function] = {}
        self.filled: set[str] = set()
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.walk(module.tree):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, Function):
            self.functions[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assigned(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._assigned(node.target, node.value)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._assigned(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.AugAssign | ast.Delete):
            for target in node.targets if isinstance(node, ast.Delete) else [node.target]:
                self.filled.add(_last(target.value if isinstance(target, ast.Subscript) else target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            self.filled.add(_last(node.func.value))
        for one in imports(node):
            self.imported[one.bound] = (one.module.rpartition(".")[2], one.name)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name | ast.Attribute):
            self.values.setdefault(_last(target), []).append(value)
        elif isinstance(target, ast.Subscript) and value_of(target.slice) is NONE_SUCH:
            # A table that is filled row by row with literals is a literal one.
            self.filled.add(_last(target.value))

    def origin(self, node: ast.expr, depth: int = _DEPTH) -> Origin | None:
        """Where the table that an expression stands for comes from; None where it is filled here, or not known."""
        if depth == 0:
            return None
        if isinstance(node, ast.Dict):
            return _literal(zip(node.keys, node.values, strict=True))
        if isinstance(node, ast.List | ast.Tuple):
            pairs = [one.elts for one in node.elts if isinstance(one, ast.List | ast.Tuple) and len(one.elts) == 2]
            return _literal((key, one) for key, one in pairs)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named(_last(node), depth)
        if isinstance(node, ast.Call) and _called(node) in self.functions:
            returned = _returned(self.functions[_called(node)])
            return next((found for one in returned if (found := self.origin(one, depth - 1))), None)
        if any(isinstance(one, ast.Call) and _called(one) in _FROM_FILES for one in ast.walk(node)):
            return Origin(True)
        inside = node.args if isinstance(node, ast.Call) else list(ast.iter_child_nodes(node))
        tables = (one for one in inside if isinstance(one, ast.expr | ast.comprehension))
        parts = (one.iter if isinstance(one, ast.comprehension) else one for one in tables)
        return next((found for one in parts if (found := self.origin(one, depth - 1))), None)

    def _named(self, name: str, depth: int) -> Origin | None:
        if name in self.filled:
            return None
        found = [self.origin(one, depth - 1) for one in self.values.get(name, ())]
        if not found and name in self.imported:
            stem, there = self.imported[name]
            other = self.others.get(stem)
            return other._named(there, depth - 1) if other is not None and other is not self else None
        return None if None in found else next(iter(found), None)


def lookups(modules: Iterable[Module]) -> Iterator[tuple[str, Lookup]]:
    """Every look-up by a text or a hash of the arguments whose value is handed on, with the path of its file."""
    by_stem: dict[str, _File] = {}
    files = [(module, _File(module, by_stem)) for module in modules]
    by_stem |= {module.path.rpartition("/")[2].removesuffix(".py"): file for module, file in files}
    for module, file in files:
        for function in file.functions.values():
            for one in _in_function(function, file):
                yield module.path, one


def judged(lookup: Lookup, asked: Asked, data: tuple[Row, ...]) -> Mark | None:
    """What a look-up amounts to, seen beside the tests and the rows of the data files that the change adds."""
    rows = data if lookup.origin.is_file else lookup.origin.rows
    told = [(key, one) for key, one in rows if is_expected(one, asked) and (not is_tiny(one) or looks_hashed(key))]
    if disguised(rows, asked) or (told and len(told) >= SHARE * len(rows) and any(bits(one) for _, one in told)):
        words = "It looks up what the tests expect by a text or hash of the arguments, in a table that nothing fills."
        return mark("special_case", lookup.node, words, lookup.key)
    if lookup.origin.is_file or lookup.is_hashed or lookup.is_compound:
        words = "It looks up its result by a text or hash of the arguments, in a table that nothing fills."
        return mark("keyed_by_tests", lookup.node, words, lookup.key)
    return None


class _Form(NamedTuple):
    is_hashed: bool
    is_compound: bool


def _in_function(function: Function, file: _File) -> Iterator[Lookup]:
    given = function.args
    names = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)} - {"self", "cls"}
    gathered = {one.arg for one in (given.vararg, given.kwarg) if one is not None}
    local: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            local[node.targets[0].id] = node.value
        elif isinstance(node, ast.NamedExpr):
            local[node.target.id] = node.value
    for node in _handed_on(function, local):
        for table, key in _asked_of(node):
            origin = file.origin(table)
            form = _form(_spelled(key, local, file), names | gathered, gathered) if origin is not None else None
            if origin is not None and form is not None:
                yield Lookup(node, function.name, form.is_hashed, form.is_compound, origin)


def _literal(pairs: Iterable[tuple[ast.expr | None, ast.expr]]) -> Origin | None:
    rows = [(value_of(key), value_of(one)) for key, one in pairs]
    return Origin(False, tuple(row for row in rows if NONE_SUCH not in row)) if rows else None


def _asked_of(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The table and the key, where a node looks something up."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr in ("get", "__getitem__"):
            yield node.func.value, node.args[0]
    elif isinstance(node, ast.For):
        for one in ast.walk(node):
            if isinstance(one, ast.Compare) and any(isinstance(line, ast.Return) for line in ast.walk(node)):
                yield from ((_bare(node.iter), side) for side in (one.left, *one.comparators))
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        for loop in node.generators:
            for one in (inner for test in loop.ifs for inner in ast.walk(test) if isinstance(inner, ast.Compare)):
                yield from ((_bare(loop.iter), side) for side in (one.left, *one.comparators))


def _bare(node: ast.expr) -> ast.expr:
    """`table` of `table.items()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "items":
        return node.func.value
    return node


def _handed_on(function: Function, local: Mapping[str, ast.expr]) -> list[ast.AST]:
    """The nodes of what a function returns, and of what was assigned to the names in it; and its loops."""
    found: dict[int, ast.AST] = {id(node): node for node in ast.walk(function) if isinstance(node, ast.For)}
    for one in _returned(function):
        for inner in ast.walk(one):
            found[id(inner)] = inner
            if isinstance(inner, ast.Name) and inner.id in local:
                found |= {id(deeper): deeper for deeper in ast.walk(local[inner.id])}
    return list(found.values())


def _returned(function: Function) -> list[ast.expr]:
    kinds = (ast.Return, ast.Yield)
    return [one.value for one in ast.walk(function) if isinstance(one, kinds) and one.value is not None]


def _spelled(node: ast.expr, local: Mapping[str, ast.expr], file: _File) -> list[ast.AST]:
    """All nodes of an expression, its names and the project's functions in it followed to what they stand for."""
    found: list[ast.AST] = []
    left: list[tuple[ast.AST, int]] = [(node, _DEPTH)]
    while left:
        one, depth = left.pop()
        for inner in ast.walk(one):
            found.append(inner)
            if depth and isinstance(inner, ast.Name) and inner.id in local:
                left.append((local[inner.id], depth - 1))
            elif depth and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
                helper = file.functions.get(inner.func.id)
                left += [(value, 0) for value in _returned(helper)] if helper is not None else []
    return found


def _form(nodes: list[ast.AST], arguments: set[str], gathered: set[str]) -> _Form | None:
    """How a key is made of the arguments; None where it is no text or hash of them."""
    used = {one.id for one in nodes if isinstance(one, ast.Name)} & arguments
    if not used:
        return None
    calls = {_called(one) for one in nodes if isinstance(one, ast.Call)}
    structure = any(isinstance(one, ast.Tuple | ast.List | ast.Dict) and len(list(_inner(one))) > 1 for one in nodes)
    is_compound = len(used) > 1 or structure or bool(used & gathered)
    percent = any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod) and _is_text(one.left) for one in nodes)
    verbatim = any(isinstance(one, ast.FormattedValue) and one.conversion in (ord("r"), ord("a")) for one in nodes)
    joined = bool(calls & _JOINS) or percent or any(isinstance(one, ast.JoinedStr) for one in nodes)
    if calls & _HASHES:
        return _Form(True, is_compound)
    if calls & _WRITES_OUT or verbatim or (joined and is_compound):
        return _Form(False, is_compound)
    return None


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    return (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _called(node: ast.Call) -> str:
    return _last(node.func)
