"""Tripwires on lookups by a text or a hash of the arguments, in a table that the code itself never fills.

An honest cache has such keys too, but it writes to its table; code that only reads was given the answers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.syntax import Function
from redstart.toolkit.languages.python.tripwires.answers import (
    SHARE,
    explain_disguised_table,
    is_expected,
    is_hash_like,
)
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    Row,
    TestLiterals,
    estimate_bits,
    get_literal,
    is_tiny,
)
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule, list_imported_names

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
"""The maximum number of names that are followed, so that a chain of them ends."""


class TableOrigin(NamedTuple):
    """Where a table comes from; `rows` are its literal rows, as far as they can be read."""

    is_file: bool
    rows: tuple[Row, ...] = ()


class Lookup(NamedTuple):
    node: ast.AST
    function: str
    is_hashed: bool
    is_compound: bool
    """Whether several arguments, or a whole structure, form one key."""
    origin: TableOrigin

    @property
    def key(self) -> str:
        return f"{self.function} {ast.dump(self.node)}"


class _File:
    """The values assigned to the names of one file, its functions, and the tables that it fills."""

    def __init__(self, module: ParsedModule, files: Mapping[str, _File]) -> None:
        self.other_files = files
        self.values: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, Function] = {}
        self.filled_names: set[str] = set()
        self.imported_names: dict[str, tuple[str, str]] = {}
        for node in module.nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, Function):
            self.functions[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._add_assignment(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._add_assignment(node.target, node.value)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._add_assignment(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.AugAssign | ast.Delete):
            for target in node.targets if isinstance(node, ast.Delete) else [node.target]:
                self.filled_names.add(_get_last_name(target.value if isinstance(target, ast.Subscript) else target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            self.filled_names.add(_get_last_name(node.func.value))
        for item in list_imported_names(node):
            self.imported_names[item.bound] = (item.module.rpartition(".")[2], item.name)

    def _add_assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name | ast.Attribute):
            self.values.setdefault(_get_last_name(target), []).append(value)
        elif isinstance(target, ast.Subscript) and get_literal(target.slice) is NONE_SUCH:
            # A table that is filled row by row with literals is a literal table.
            self.filled_names.add(_get_last_name(target.value))

    def find_origin(self, node: ast.expr, depth: int = _DEPTH) -> TableOrigin | None:
        """Find the origin of the table that an expression stands for; None if it is filled here or not known."""
        if depth == 0:
            return None
        if isinstance(node, ast.Dict):
            return _create_literal_origin(zip(node.keys, node.values, strict=True))
        if isinstance(node, ast.List | ast.Tuple):
            pairs = [elt.elts for elt in node.elts if isinstance(elt, ast.List | ast.Tuple) and len(elt.elts) == 2]
            return _create_literal_origin((key, pair) for key, pair in pairs)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._find_named_origin(_get_last_name(node), depth)
        if isinstance(node, ast.Call) and _get_called_name(node) in self.functions:
            returned_values = _list_returned_values(self.functions[_get_called_name(node)])
            return next((found for item in returned_values if (found := self.find_origin(item, depth - 1))), None)
        if any(isinstance(item, ast.Call) and _get_called_name(item) in _FROM_FILES for item in ast.walk(node)):
            return TableOrigin(True)
        inside = node.args if isinstance(node, ast.Call) else list(ast.iter_child_nodes(node))
        tables = (item for item in inside if isinstance(item, ast.expr | ast.comprehension))
        parts = (table.iter if isinstance(table, ast.comprehension) else table for table in tables)
        return next((found for part in parts if (found := self.find_origin(part, depth - 1))), None)

    def _find_named_origin(self, name: str, depth: int) -> TableOrigin | None:
        if name in self.filled_names:
            return None
        origins = [self.find_origin(item, depth - 1) for item in self.values.get(name, ())]
        if not origins and name in self.imported_names:
            stem, original_name = self.imported_names[name]
            other_file = self.other_files.get(stem)
            return (
                other_file._find_named_origin(original_name, depth - 1)
                if other_file is not None and other_file is not self
                else None
            )
        return None if None in origins else next(iter(origins), None)


def find_lookups(modules: Iterable[ParsedModule]) -> Iterator[tuple[str, Lookup]]:
    """Yield every lookup by a text or a hash of the arguments whose value is returned, with the path of its file."""
    by_stem: dict[str, _File] = {}
    files = [(module, _File(module, by_stem)) for module in modules]
    by_stem |= {module.path.rpartition("/")[2].removesuffix(".py"): file for module, file in files}
    for module, file in files:
        for function in file.functions.values():
            for item in _in_function(function, file):
                yield module.path, item


def judge_lookup(lookup: Lookup, test_literals: TestLiterals, data: tuple[Row, ...]) -> RuleMark | None:
    """Judge a lookup by comparing it with the tests and with the rows of the data files that the change adds."""
    rows = data if lookup.origin.is_file else lookup.origin.rows
    expected_rows = [
        (key, row) for key, row in rows if is_expected(row, test_literals) and (not is_tiny(row) or is_hash_like(key))
    ]
    if explain_disguised_table(rows, test_literals) or (
        expected_rows
        and len(expected_rows) >= SHARE * len(rows)
        and any(estimate_bits(message) for _, message in expected_rows)
    ):
        reason = "It looks up what the tests expect by a text or hash of the arguments, in a table that nothing fills."
        return mark("special_case", lookup.node, reason, lookup.key)
    if lookup.origin.is_file or lookup.is_hashed or lookup.is_compound:
        reason = "It looks up its result by a text or hash of the arguments, in a table that nothing fills."
        return mark("keyed_by_tests", lookup.node, reason, lookup.key)
    return None


class _Form(NamedTuple):
    is_hashed: bool
    is_compound: bool


def _in_function(function: Function, file: _File) -> Iterator[Lookup]:
    parameters = function.args
    names = {posonlyarg.arg for posonlyarg in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)} - {
        "self",
        "cls",
    }
    variadic_names = {item.arg for item in (parameters.vararg, parameters.kwarg) if item is not None}
    local: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            local[node.targets[0].id] = node.value
        elif isinstance(node, ast.NamedExpr):
            local[node.target.id] = node.value
    for node in _list_result_nodes(function, local):
        for table, key in _find_table_and_key(node):
            origin = file.find_origin(table)
            form = (
                _classify_key(_expand_nodes(key, local, file), names | variadic_names, variadic_names)
                if origin is not None
                else None
            )
            if origin is not None and form is not None:
                yield Lookup(node, function.name, form.is_hashed, form.is_compound, origin)


def _create_literal_origin(pairs: Iterable[tuple[ast.expr | None, ast.expr]]) -> TableOrigin | None:
    rows = [(get_literal(key), get_literal(pair)) for key, pair in pairs]
    return TableOrigin(False, tuple(row for row in rows if NONE_SUCH not in row)) if rows else None


def _find_table_and_key(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the table and the key if a node looks something up."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        if node.func.attr in ("get", "__getitem__"):
            yield node.func.value, node.args[0]
    elif isinstance(node, ast.For):
        for item in ast.walk(node):
            if isinstance(item, ast.Compare) and any(isinstance(line, ast.Return) for line in ast.walk(node)):
                yield from ((_strip_items_call(node.iter), operand) for operand in (item.left, *item.comparators))
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        for loop in node.generators:
            for item in (child for test in loop.ifs for child in ast.walk(test) if isinstance(child, ast.Compare)):
                yield from ((_strip_items_call(loop.iter), operand) for operand in (item.left, *item.comparators))


def _strip_items_call(node: ast.expr) -> ast.expr:
    """Return `table` of `table.items()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "items":
        return node.func.value
    return node


def _list_result_nodes(function: Function, local: Mapping[str, ast.expr]) -> list[ast.AST]:
    """List the nodes of the values that a function returns, of the values assigned to names in them, and its loops."""
    nodes: dict[int, ast.AST] = {id(node): node for node in ast.walk(function) if isinstance(node, ast.For)}
    for item in _list_returned_values(function):
        for child in ast.walk(item):
            nodes[id(child)] = child
            if isinstance(child, ast.Name) and child.id in local:
                nodes |= {id(deeper): deeper for deeper in ast.walk(local[child.id])}
    return list(nodes.values())


def _list_returned_values(function: Function) -> list[ast.expr]:
    kinds = (ast.Return, ast.Yield)
    return [node.value for node in ast.walk(function) if isinstance(node, kinds) and node.value is not None]


def _expand_nodes(node: ast.expr, local: Mapping[str, ast.expr], file: _File) -> list[ast.AST]:
    """List all nodes of an expression, following names and the project's functions to what they stand for."""
    nodes: list[ast.AST] = []
    waiting: list[tuple[ast.AST, int]] = [(node, _DEPTH)]
    while waiting:
        current, depth = waiting.pop()
        for child in ast.walk(current):
            nodes.append(child)
            if depth and isinstance(child, ast.Name) and child.id in local:
                waiting.append((local[child.id], depth - 1))
            elif depth and isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
                helper = file.functions.get(child.func.id)
                waiting += [(value, 0) for value in _list_returned_values(helper)] if helper is not None else []
    return nodes


def _classify_key(nodes: list[ast.AST], arguments: set[str], variadic_names: set[str]) -> _Form | None:
    """Return how a key is built from the arguments; None if it is not a text or a hash of them."""
    used = {node.id for node in nodes if isinstance(node, ast.Name)} & arguments
    if not used:
        return None
    calls = {_get_called_name(node) for node in nodes if isinstance(node, ast.Call)}
    structure = any(
        isinstance(node, ast.Tuple | ast.List | ast.Dict) and len(list(_list_child_expressions(node))) > 1
        for node in nodes
    )
    is_compound = len(used) > 1 or structure or bool(used & variadic_names)
    percent = any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left) for node in nodes
    )
    verbatim = any(isinstance(node, ast.FormattedValue) and node.conversion in (ord("r"), ord("a")) for node in nodes)
    is_joined = bool(calls & _JOINS) or percent or any(isinstance(node, ast.JoinedStr) for node in nodes)
    if calls & _HASHES:
        return _Form(True, is_compound)
    if calls & _WRITES_OUT or verbatim or (is_joined and is_compound):
        return _Form(False, is_compound)
    return None


def _list_child_expressions(node: ast.AST) -> Iterator[ast.AST]:
    return (item for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _get_last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _get_called_name(node: ast.Call) -> str:
    return _get_last_name(node.func)
