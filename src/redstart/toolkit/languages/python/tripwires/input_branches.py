"""Tripwires on branches for exactly the tests' inputs, while everything else is computed as before.

Honest code has such guards too, so this only asks a person: each literal must come from a test's input and be new to
the file, and outside of the branch the function must compute nothing new.
"""

from __future__ import annotations

import ast
import copy
import http
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.syntax import Function
from redstart.toolkit.languages.python.tripwires.answers import format_values
from redstart.toolkit.languages.python.tripwires.branches import parse_comparison
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    TestLiterals,
    Value,
    get_literal,
    is_plain_word,
    is_tiny,
    walk_literals,
)
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_TRIVIAL = frozenset({-2, 2})
_STATUSES: frozenset[Value] = frozenset(int(item) for item in http.HTTPStatus)
_WELL_KNOWN: tuple[frozenset[Value], ...] = (frozenset({4, 6, 9, 11}), frozenset({1, 3, 5, 7, 8, 10, 12}))
"""The months with 30 and with 31 days."""
_POWERS: frozenset[Value] = frozenset(1 << size for size in range(65))
_WORD = re.compile(r"-?\d+(?:\.\d+)?|\w+")
_TEST_NAME = re.compile(rb"\bdef (test\w*)")
_MIN_KEYS = 2

Collection = ast.Tuple | ast.List | ast.Set | ast.Dict


class LiteralGuard(NamedTuple):
    """The arms of a function that compare one subject with certain literals."""

    node: ast.AST
    keys: frozenset[Value]
    guarded_nodes: tuple[ast.AST, ...]
    """The code that runs only for these literals."""
    tests: tuple[ast.AST, ...]

    @property
    def key(self) -> str:
        return f"{sorted(map(repr, self.keys))} {[ast.dump(test) for test in self.tests]}"


def find_new_guards(
    module: ParsedModule, before: ParsedModule | None
) -> Iterator[tuple[Function, Function, LiteralGuard]]:
    """Yield new guards of functions that existed before the change, with the old and the new function."""
    old = {item.name: item for item in before.functions} if before is not None else {}
    sets = _map_collections(module)
    for function in module.functions:
        old_function = old.get(function.name)
        if old_function is not None and ast.dump(old_function) != ast.dump(function):
            had = {guard.key for guard in _find_guards(old_function, sets)}
            yield from (
                (old_function, function, guard) for guard in _find_guards(function, sets) if guard.key not in had
            )


def find_marks(
    module: ParsedModule, before: ParsedModule | None, test_literals: TestLiterals, tests: Mapping[str, bytes]
) -> Iterator[RuleMark]:
    for old_function, function, guard in find_new_guards(module, before):
        distinctive = {item for item in guard.keys if not _is_trivial(item)}
        if len(distinctive) < _MIN_KEYS or not distinctive <= test_literals.inputs or before is None:
            continue
        if _is_well_known(distinctive) or distinctive & _collect_domain_values(before, tests):
            continue
        if _is_guard_only_change(old_function, function, guard):
            message = (
                f"It treats {format_values(*sorted(distinctive, key=repr))} apart, inputs of the tests, "
                f"and all else as before."
            )
            yield mark("keyed_by_tests", guard.node, message)


class _Arm(NamedTuple):
    """One place of a function that compares with certain literals; the arms of one subject form a guard."""

    node: ast.AST
    subject: str
    keys: frozenset[Value]
    guarded_nodes: tuple[ast.AST, ...]
    tests: tuple[ast.AST, ...]


def _find_guards(function: Function, sets: Mapping[str, Collection]) -> Iterator[LiteralGuard]:
    """Yield one guard for each subject, however many arms it has."""
    arms: dict[str, list[_Arm]] = {}
    for node in ast.walk(function):
        for arm in (*_find_branch_arms(node, sets), *_find_lookup_arms(node, sets), *_find_loop_arms(node, sets)):
            arms.setdefault(arm.subject, []).append(arm)
    for subject_arms in arms.values():
        keys = frozenset(key for arm in subject_arms for key in arm.keys)
        guarded = tuple(line for arm in subject_arms for line in arm.guarded_nodes)
        yield LiteralGuard(
            subject_arms[0].node, keys, guarded, tuple(test for arm in subject_arms for test in arm.tests)
        )


def _find_branch_arms(node: ast.AST, sets: Mapping[str, Collection]) -> Iterator[_Arm]:
    """Yield conditions that compare with literals, with a named collection or with the keys of a table."""
    if isinstance(node, ast.If | ast.IfExp):
        comparison = parse_comparison(_Named(sets).visit(copy.deepcopy(node.test)))
        if comparison is not None:
            body = node.orelse if comparison.negated else node.body
            guarded = tuple[ast.AST, ...](body) if isinstance(body, list) else (cast(ast.AST, body),)
            yield _Arm(
                node,
                comparison.subject,
                frozenset(comparison.keys),
                guarded,
                (node.test, *_find_named_collections(node.test, sets)),
            )
    elif isinstance(node, ast.Match):
        for case in node.cases:
            values = [get_literal(item.value) for item in ast.walk(case.pattern) if isinstance(item, ast.MatchValue)]
            if values:
                subject = ast.unparse(node.subject)
                yield _Arm(case.pattern, subject, frozenset(values), tuple(case.body), (case.pattern,))


def _find_lookup_arms(node: ast.AST, sets: Mapping[str, Collection]) -> Iterator[_Arm]:
    """Yield lookups such as `{10: 4, 100: 25}.get(limit, ...)`, also with brackets or a name."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        table, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        table, key = node.func.value, node.args[0]
    else:
        return
    table = sets.get(table.id) if isinstance(table, ast.Name) else table
    if isinstance(table, ast.Dict) and get_literal(key) is NONE_SUCH:
        yield _Arm(node, f"table by {ast.unparse(key)}", _list_elements(table), (node,), (table,))


def _find_loop_arms(node: ast.AST, sets: Mapping[str, Collection]) -> Iterator[_Arm]:
    """Yield loops over literals that compare each with the input."""
    if isinstance(node, ast.For):
        for values, loop in _find_iterated_collection(node.iter, node.target, sets):
            inside = (item for line in node.body for item in ast.walk(line) if isinstance(item, ast.If))
            for item in inside:
                if _is_equality_test(item.test, loop):
                    subject = f"each of {ast.unparse(node.iter)}"
                    yield _Arm(node, subject, _list_elements(values), tuple(item.body), (item.test, node.iter, values))
    elif isinstance(node, ast.If | ast.IfExp):
        body = node.body if isinstance(node.body, list) else [node.body]
        for item in ast.walk(node.test):
            if isinstance(item, ast.comprehension):
                for values, loop in _find_iterated_collection(item.iter, item.target, sets):
                    if _is_equality_test(node.test, loop):
                        subject = f"each of {ast.unparse(item.iter)}"
                        yield _Arm(node, subject, _list_elements(values), tuple(body), (node.test, values))
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        for generator in node.generators:
            for values, loop in _find_iterated_collection(generator.iter, generator.target, sets):
                if any(_is_equality_test(test, loop) for test in generator.ifs):
                    yield _Arm(
                        node, f"those of {ast.unparse(generator.iter)}", _list_elements(values), (node,), (node, values)
                    )


def _find_iterated_collection(
    iterated: ast.expr, target: ast.expr, sets: Mapping[str, Collection]
) -> Iterator[tuple[Collection, str]]:
    values = sets.get(iterated.id) if isinstance(iterated, ast.Name) else iterated
    if isinstance(values, Collection) and isinstance(target, ast.Name):
        yield values, target.id


def _is_equality_test(test: ast.expr, name: str) -> bool:
    """Whether a condition tests for equality with an expression that uses a name."""
    comparisons = [
        node for node in ast.walk(test) if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.In)
    ]
    return any(_has_name(item, {name}) for item in comparisons)


def _has_name(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in ast.walk(node))


def _list_elements(values: Collection) -> frozenset[Value]:
    """List a collection's elements, or the keys of a table."""
    nodes = values.keys if isinstance(values, ast.Dict) else values.elts
    return frozenset(value for node in nodes if (value := get_literal(node)) is not NONE_SUCH)


def _find_named_collections(test: ast.expr, sets: Mapping[str, Collection]) -> Iterator[ast.AST]:
    """Find the collections that a condition names: their definitions are part of the condition."""
    return (sets[node.id] for node in ast.walk(test) if isinstance(node, ast.Name) and node.id in sets)


def _is_guard_only_change(old_function: Function, function: Function, guard: LiteralGuard) -> bool:
    """Whether the guarded code computes something new, and the rest of the function nothing."""
    old_expressions = {ast.dump(node) for node in ast.walk(old_function) if isinstance(node, ast.expr)}
    # Operators and contexts are singletons that the whole tree shares.
    nodes = (child for test in (*guard.guarded_nodes, *guard.tests) for child in ast.walk(test))
    apart = {id(node) for node in nodes if isinstance(node, ast.expr | ast.stmt | ast.pattern)}
    outside = [node for node in ast.walk(function) if id(node) not in apart]
    # An expression that contains the guard is new because of the guard.
    unguarded = [item for item in outside if not any(id(child) in apart for child in ast.walk(item))]
    result_names = _list_result_names(old_function, function, apart)
    unguarded = [
        item
        for item in unguarded
        if not any(isinstance(child, ast.Name) and child.id in result_names for child in ast.walk(item))
    ]
    guarded_nodes = [node for line in guard.guarded_nodes for node in ast.walk(line)]
    return not any(_is_new(item, old_expressions) for item in unguarded) and any(
        _is_new(item, old_expressions, literal=True) for item in guarded_nodes
    )


def _list_result_names(old_function: Function, function: Function, apart: set[int]) -> set[str]:
    """List the new names that hold results of the guarded code."""
    old = {item.id for item in ast.walk(old_function) if isinstance(item, ast.Name)}
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.NamedExpr) and any(id(item) in apart for item in ast.walk(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {item.id for item in targets if isinstance(item, ast.Name)}
    return names - old


def _is_new(node: ast.AST, old_expressions: set[str], *, literal: bool = False) -> bool:
    if not isinstance(node, ast.expr) or isinstance(node, ast.Name):
        return False
    if isinstance(node, ast.Constant) and (not literal and (is_tiny(node.value) or isinstance(node.value, str))):
        return False
    if isinstance(node, ast.Tuple) and all(isinstance(elt, ast.Name) for elt in node.elts):
        return False
    return ast.dump(node) not in old_expressions


def _is_trivial(value: Value) -> bool:
    if is_tiny(value) or value in _TRIVIAL or isinstance(value, tuple):
        return True
    return isinstance(value, str) and (len(value) < 2 or is_plain_word(value))


def _is_well_known(keys: set[Value]) -> bool:
    return keys <= _STATUSES or keys <= _POWERS or frozenset(keys) in _WELL_KNOWN


def _collect_domain_values(before: ParsedModule, tests: Mapping[str, bytes]) -> set[Value]:
    """List the old file's literals and words, and the numbers in test names: they belong to the program's domain."""
    values: set[Value] = set()
    for node in before.nodes:
        if isinstance(node, ast.Constant):
            values |= set(walk_literals(get_literal(node)))
            if isinstance(node.value, str):
                values |= set(_walk_words(node.value))
    for text in tests.values():
        names = (raw_name.decode("utf-8", "replace") for raw_name in _TEST_NAME.findall(text))
        values |= {int(number) for name in names for number in re.findall(r"\d{3,}", name)}
    return values


def _walk_words(text: str) -> Iterator[Value]:
    for word in _WORD.findall(text):
        yield word
        if word.lstrip("-").isdecimal():
            yield int(word)


class _Named(ast.NodeTransformer):
    """Replaces names of literal collections with the collections, and a table in a containment test with its keys."""

    def __init__(self, collections: Mapping[str, Collection]) -> None:
        self._collections = collections

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._collections.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(table := node.comparators[0], ast.Dict):
            keys = [key for key in table.keys if key is not None]
            return ast.Compare(node.left, node.ops, [ast.Tuple(keys, ast.Load())])
        return node


def _map_collections(module: ParsedModule) -> dict[str, Collection]:
    """Map names to the literal collections that they stand for, also inside `frozenset` and similar calls."""
    collections: dict[str, Collection] = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
                value = value.args[0] if value.func.id in ("frozenset", "set", "tuple", "list", "dict") else value
            if isinstance(value, Collection):
                collections[node.targets[0].id] = value
    return collections
