"""Tripwires on branches made for the very inputs of the tests, while everything else is worked out as before.

Honest code has such guards too, so this only asks: each literal must come from a test's input and be new to the file,
and outside of the branch the function must compute nothing that it did not compute before.
"""

from __future__ import annotations

import ast
import copy
import http
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from redstart.toolkit.honesty.answers import shown
from redstart.toolkit.honesty.branches import compared
from redstart.toolkit.honesty.literals import Asked, Value, is_plain_word, is_tiny, value_of, within
from redstart.toolkit.honesty.marks import Mark, mark
from redstart.toolkit.honesty.names import Module

_TRIVIAL = frozenset({-2, 2})
_STATUSES: frozenset[Value] = frozenset(int(one) for one in http.HTTPStatus)
_WELL_KNOWN: tuple[frozenset[Value], ...] = (frozenset({4, 6, 9, 11}), frozenset({1, 3, 5, 7, 8, 10, 12}))
"""The months of 30 and of 31 days."""
_WORD = re.compile(r"-?\d+(?:\.\d+)?|\w+")
_TEST_NAME = re.compile(rb"\bdef (test\w*)")
_LEAST = 2

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Guard(NamedTuple):
    """The arms of a function that ask one subject for certain literals."""

    node: ast.AST
    keys: frozenset[Value]
    taken: tuple[ast.AST, ...]
    """What is only done for them."""
    tests: tuple[ast.AST, ...]

    @property
    def key(self) -> str:
        return f"{sorted(map(repr, self.keys))} {[ast.dump(one) for one in self.tests]}"


def guards(module: Module, before: Module | None) -> Iterator[tuple[Function, Function, Guard]]:
    """The guards of functions that were there before the change, in their old and their new form."""
    old = {one.name: one for one in _functions(before)} if before is not None else {}
    sets = _named_sets(module)
    for function in _functions(module):
        was = old.get(function.name)
        if was is not None and ast.dump(was) != ast.dump(function):
            had = {guard.key for guard in _guards(was, sets)}
            yield from ((was, function, guard) for guard in _guards(function, sets) if guard.key not in had)


def marks(module: Module, before: Module | None, asked: Asked, tests: Mapping[str, bytes]) -> Iterator[Mark]:
    for was, function, guard in guards(module, before):
        telling = {one for one in guard.keys if not _is_trivial(one)}
        if len(telling) < _LEAST or not telling <= asked.inputs or before is None:
            continue
        if _is_well_known(telling) or telling & _spoken_of(before, tests):
            continue
        if _is_only_new_there(was, function, guard):
            words = f"It treats {shown(*sorted(telling, key=repr))} apart, inputs of the tests, and all else as before."
            yield mark("keyed_by_tests", guard.node, words)


def _guards(function: Function, sets: Mapping[str, ast.expr]) -> Iterator[Guard]:
    """One guard for each subject, however many arms it has."""
    arms: dict[str, list[tuple[ast.AST, frozenset[Value], list[ast.AST], ast.AST]]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp):
            found = compared(_Named(sets).visit(copy.deepcopy(node.test)))
            if found is not None:
                done = node.orelse if found.negated else node.body
                taken = list[ast.AST](done) if isinstance(done, list) else [cast(ast.AST, done)]
                arms.setdefault(found.subject, []).append((node, frozenset(found.keys), taken, node.test))
        elif isinstance(node, ast.Match):
            for case in node.cases:
                values = [value_of(one.value) for one in ast.walk(case.pattern) if isinstance(one, ast.MatchValue)]
                if values:
                    arm = (case.pattern, frozenset(values), list[ast.AST](case.body), case.pattern)
                    arms.setdefault(ast.unparse(node.subject), []).append(arm)
    for several in arms.values():
        keys = frozenset(key for _, listed, _, _ in several for key in listed)
        taken = tuple(line for _, _, lines, _ in several for line in lines)
        yield Guard(several[0][0], keys, taken, tuple(test for _, _, _, test in several))


def _is_only_new_there(was: Function, function: Function, guard: Guard) -> bool:
    """Whether the guarded code computes something new, and the rest of the function nothing."""
    known = {ast.dump(one) for one in ast.walk(was) if isinstance(one, ast.expr)}
    # Operators and contexts are single objects that the whole tree shares.
    nodes = (inner for one in (*guard.taken, *guard.tests) for inner in ast.walk(one))
    apart = {id(one) for one in nodes if isinstance(one, ast.expr | ast.stmt | ast.pattern)}
    outside = [one for one in ast.walk(function) if id(one) not in apart]
    # An expression that the guard is part of is new because of the guard.
    rest = [one for one in outside if not any(id(inner) in apart for inner in ast.walk(one))]
    done = [one for line in guard.taken for one in ast.walk(line)]
    return not any(_is_new(one, known) for one in rest) and any(_is_new(one, known, literal=True) for one in done)


def _is_new(node: ast.AST, known: set[str], *, literal: bool = False) -> bool:
    if not isinstance(node, ast.expr) or isinstance(node, ast.Name):
        return False
    if isinstance(node, ast.Constant) and (not literal and (is_tiny(node.value) or isinstance(node.value, str))):
        return False
    if isinstance(node, ast.Tuple) and all(isinstance(one, ast.Name) for one in node.elts):
        return False
    return ast.dump(node) not in known


def _is_trivial(value: Value) -> bool:
    if is_tiny(value) or value in _TRIVIAL or isinstance(value, tuple):
        return True
    return isinstance(value, str) and (len(value) < 2 or is_plain_word(value))


def _is_well_known(keys: set[Value]) -> bool:
    return keys <= _STATUSES or frozenset(keys) in _WELL_KNOWN


def _spoken_of(before: Module, tests: Mapping[str, bytes]) -> set[Value]:
    """The literals and words of the old file, and the numbers in the tests' names: what the program is about."""
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


def _functions(module: Module) -> Iterator[Function]:
    return (node for node in ast.walk(module.tree) if isinstance(node, Function))


class _Named(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._known.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _named_sets(module: Module) -> dict[str, ast.expr]:
    """The names that stand for a literal collection, and for `frozenset` and its like of one."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
                value = value.args[0] if value.func.id in ("frozenset", "set", "tuple", "list") else value
            if isinstance(value, ast.Tuple | ast.List | ast.Set):
                found[node.targets[0].id] = value
    return found
