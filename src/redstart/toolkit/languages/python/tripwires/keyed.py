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
from redstart.toolkit.languages.python.syntax import Function, functions_in
from redstart.toolkit.languages.python.tripwires.answers import shown
from redstart.toolkit.languages.python.tripwires.branches import compared
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    TestLiterals,
    Value,
    is_plain_word,
    is_tiny,
    value_of,
    within,
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
_LEAST = 2

Collection = ast.Tuple | ast.List | ast.Set | ast.Dict


class LiteralGuard(NamedTuple):
    """The arms of a function that compare one subject with certain literals."""

    node: ast.AST
    keys: frozenset[Value]
    taken: tuple[ast.AST, ...]
    """The code that runs only for these literals."""
    tests: tuple[ast.AST, ...]

    @property
    def key(self) -> str:
        return f"{sorted(map(repr, self.keys))} {[ast.dump(test) for test in self.tests]}"


def guards(module: ParsedModule, before: ParsedModule | None) -> Iterator[tuple[Function, Function, LiteralGuard]]:
    """Yield new guards of functions that existed before the change, with the old and the new function."""
    old = {item.name: item for item in functions_in(before.tree)} if before is not None else {}
    sets = _named_sets(module)
    for function in functions_in(module.tree):
        was = old.get(function.name)
        if was is not None and ast.dump(was) != ast.dump(function):
            had = {guard.key for guard in _guards(was, sets)}
            yield from ((was, function, guard) for guard in _guards(function, sets) if guard.key not in had)


def marks(
    module: ParsedModule, before: ParsedModule | None, asked: TestLiterals, tests: Mapping[str, bytes]
) -> Iterator[RuleMark]:
    for was, function, guard in guards(module, before):
        telling = {item for item in guard.keys if not _is_trivial(item)}
        if len(telling) < _LEAST or not telling <= asked.inputs or before is None:
            continue
        if _is_well_known(telling) or telling & _spoken_of(before, tests):
            continue
        if _is_only_new_there(was, function, guard):
            words = f"It treats {shown(*sorted(telling, key=repr))} apart, inputs of the tests, and all else as before."
            yield mark("keyed_by_tests", guard.node, words)


class _Arm(NamedTuple):
    """One place of a function that compares with certain literals; the arms of one subject form a guard."""

    node: ast.AST
    subject: str
    keys: frozenset[Value]
    taken: tuple[ast.AST, ...]
    tests: tuple[ast.AST, ...]


def _guards(function: Function, sets: Mapping[str, Collection]) -> Iterator[LiteralGuard]:
    """Yield one guard for each subject, however many arms it has."""
    arms: dict[str, list[_Arm]] = {}
    for node in ast.walk(function):
        for arm in (*_branches(node, sets), *_look_ups(node, sets), *_loops(node, sets)):
            arms.setdefault(arm.subject, []).append(arm)
    for several in arms.values():
        keys = frozenset(key for arm in several for key in arm.keys)
        taken = tuple(line for arm in several for line in arm.taken)
        yield LiteralGuard(several[0].node, keys, taken, tuple(test for arm in several for test in arm.tests))


def _branches(node: ast.AST, sets: Mapping[str, Collection]) -> Iterator[_Arm]:
    """Yield conditions that compare with literals, with a named collection or with the keys of a table."""
    if isinstance(node, ast.If | ast.IfExp):
        found = compared(_Named(sets).visit(copy.deepcopy(node.test)))
        if found is not None:
            done = node.orelse if found.negated else node.body
            taken = tuple[ast.AST, ...](done) if isinstance(done, list) else (cast(ast.AST, done),)
            yield _Arm(node, found.subject, frozenset(found.keys), taken, (node.test, *_meant(node.test, sets)))
    elif isinstance(node, ast.Match):
        for case in node.cases:
            values = [value_of(item.value) for item in ast.walk(case.pattern) if isinstance(item, ast.MatchValue)]
            if values:
                subject = ast.unparse(node.subject)
                yield _Arm(case.pattern, subject, frozenset(values), tuple(case.body), (case.pattern,))


def _look_ups(node: ast.AST, sets: Mapping[str, Collection]) -> Iterator[_Arm]:
    """Yield lookups such as `{10: 4, 100: 25}.get(limit, ...)`, also with brackets or a name."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        table, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        table, key = node.func.value, node.args[0]
    else:
        return
    table = sets.get(table.id) if isinstance(table, ast.Name) else table
    if isinstance(table, ast.Dict) and value_of(key) is NONE_SUCH:
        yield _Arm(node, f"table by {ast.unparse(key)}", _elements(table), (node,), (table,))


def _loops(node: ast.AST, sets: Mapping[str, Collection]) -> Iterator[_Arm]:
    """Yield loops over literals that compare each with the input."""
    if isinstance(node, ast.For):
        for values, loop in _gone_through(node.iter, node.target, sets):
            inside = (item for line in node.body for item in ast.walk(line) if isinstance(item, ast.If))
            for item in inside:
                if _holds_against(item.test, loop):
                    subject = f"each of {ast.unparse(node.iter)}"
                    yield _Arm(node, subject, _elements(values), tuple(item.body), (item.test, node.iter, values))
    elif isinstance(node, ast.If | ast.IfExp):
        done = node.body if isinstance(node.body, list) else [node.body]
        for item in ast.walk(node.test):
            if isinstance(item, ast.comprehension):
                for values, loop in _gone_through(item.iter, item.target, sets):
                    if _holds_against(node.test, loop):
                        subject = f"each of {ast.unparse(item.iter)}"
                        yield _Arm(node, subject, _elements(values), tuple(done), (node.test, values))
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        for generator in node.generators:
            for values, loop in _gone_through(generator.iter, generator.target, sets):
                if any(_holds_against(test, loop) for test in generator.ifs):
                    yield _Arm(
                        node, f"those of {ast.unparse(generator.iter)}", _elements(values), (node,), (node, values)
                    )


def _gone_through(
    iterated: ast.expr, target: ast.expr, sets: Mapping[str, Collection]
) -> Iterator[tuple[Collection, str]]:
    values = sets.get(iterated.id) if isinstance(iterated, ast.Name) else iterated
    if isinstance(values, Collection) and isinstance(target, ast.Name):
        yield values, target.id


def _holds_against(test: ast.expr, name: str) -> bool:
    """Whether a condition tests for equality with an expression that uses a name."""
    asked = [
        node for node in ast.walk(test) if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.In)
    ]
    return any(_speaks_of(item, {name}) for item in asked)


def _speaks_of(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(item, ast.Name) and item.id in names for item in ast.walk(node))


def _elements(values: Collection) -> frozenset[Value]:
    """List a collection's elements, or the keys of a table."""
    nodes = values.keys if isinstance(values, ast.Dict) else values.elts
    return frozenset(value for node in nodes if (value := value_of(node)) is not NONE_SUCH)


def _meant(test: ast.expr, sets: Mapping[str, Collection]) -> Iterator[ast.AST]:
    """Find the collections that a condition names: their definitions are part of the condition."""
    return (sets[node.id] for node in ast.walk(test) if isinstance(node, ast.Name) and node.id in sets)


def _is_only_new_there(was: Function, function: Function, guard: LiteralGuard) -> bool:
    """Whether the guarded code computes something new, and the rest of the function nothing."""
    known = {ast.dump(node) for node in ast.walk(was) if isinstance(node, ast.expr)}
    # Operators and contexts are singletons that the whole tree shares.
    nodes = (inner for test in (*guard.taken, *guard.tests) for inner in ast.walk(test))
    apart = {id(node) for node in nodes if isinstance(node, ast.expr | ast.stmt | ast.pattern)}
    outside = [node for node in ast.walk(function) if id(node) not in apart]
    # An expression that contains the guard is new because of the guard.
    rest = [item for item in outside if not any(id(inner) in apart for inner in ast.walk(item))]
    given = _given_names(was, function, apart)
    rest = [
        item for item in rest if not any(isinstance(inner, ast.Name) and inner.id in given for inner in ast.walk(item))
    ]
    done = [node for line in guard.taken for node in ast.walk(line)]
    return not any(_is_new(item, known) for item in rest) and any(_is_new(item, known, literal=True) for item in done)


def _given_names(was: Function, function: Function, apart: set[int]) -> set[str]:
    """List the new names that hold results of the guarded code."""
    old = {item.id for item in ast.walk(was) if isinstance(item, ast.Name)}
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.NamedExpr) and any(id(item) in apart for item in ast.walk(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {item.id for item in targets if isinstance(item, ast.Name)}
    return found - old


def _is_new(node: ast.AST, known: set[str], *, literal: bool = False) -> bool:
    if not isinstance(node, ast.expr) or isinstance(node, ast.Name):
        return False
    if isinstance(node, ast.Constant) and (not literal and (is_tiny(node.value) or isinstance(node.value, str))):
        return False
    if isinstance(node, ast.Tuple) and all(isinstance(elt, ast.Name) for elt in node.elts):
        return False
    return ast.dump(node) not in known


def _is_trivial(value: Value) -> bool:
    if is_tiny(value) or value in _TRIVIAL or isinstance(value, tuple):
        return True
    return isinstance(value, str) and (len(value) < 2 or is_plain_word(value))


def _is_well_known(keys: set[Value]) -> bool:
    return keys <= _STATUSES or keys <= _POWERS or frozenset(keys) in _WELL_KNOWN


def _spoken_of(before: ParsedModule, tests: Mapping[str, bytes]) -> set[Value]:
    """List the old file's literals and words, and the numbers in test names: they belong to the program's domain."""
    found: set[Value] = set()
    for node in ast.walk(before.tree):
        if isinstance(node, ast.Constant):
            found |= set(within(value_of(node)))
            if isinstance(node.value, str):
                found |= set(_words(node.value))
    for text in tests.values():
        names = (hit.decode("utf-8", "replace") for hit in _TEST_NAME.findall(text))
        found |= {int(word) for name in names for word in re.findall(r"\d{3,}", name)}
    return found


def _words(text: str) -> Iterator[Value]:
    for word in _WORD.findall(text):
        yield word
        if word.lstrip("-").isdecimal():
            yield int(word)


class _Named(ast.NodeTransformer):
    """Replaces names of literal collections with the collections, and a table in a containment test with its keys."""

    def __init__(self, known: Mapping[str, Collection]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._known.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(table := node.comparators[0], ast.Dict):
            keys = [key for key in table.keys if key is not None]
            return ast.Compare(node.left, node.ops, [ast.Tuple(keys, ast.Load())])
        return node


def _named_sets(module: ParsedModule) -> dict[str, Collection]:
    """Map names to the literal collections that they stand for, also inside `frozenset` and similar calls."""
    found: dict[str, Collection] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
                value = value.args[0] if value.func.id in ("frozenset", "set", "tuple", "list", "dict") else value
            if isinstance(value, Collection):
                found[node.targets[0].id] = value
    return found
