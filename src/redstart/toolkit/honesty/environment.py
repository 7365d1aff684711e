"""Tripwires on variables that only the tests' configuration sets: to ask for one is to ask who is looking."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.toolkit.honesty.literals import NONE_SUCH, value_of, within
from redstart.toolkit.honesty.marks import Mark, mark
from redstart.toolkit.honesty.names import Module
from redstart.toolkit.honesty.questions import is_configuration

_READS = frozenset({"os.environ.get", "os.getenv", "os.environ.pop", "os.environ.setdefault"})
_PASSES_ON = (ast.Call, ast.Attribute, ast.UnaryOp, ast.Subscript, ast.NamedExpr)
"""What may stand between a variable and the condition that asks for it: `.lower()`, `not`, `bool(...)`."""

_EVERYWHERE = frozenset({"HOME", "PATH", "USER", "SHELL", "TERM", "LANG", "COLUMNS", "NO_COLOR", "FORCE_COLOR"})
"""What any machine may have set."""


class _Asked(NamedTuple):
    """A variable that a condition asks for; `node` reads it, and `texts` are those that it is held against."""

    node: ast.AST
    name: str
    texts: frozenset[str]

    @property
    def key(self) -> str:
        return f"{ast.dump(self.node)} {sorted(self.texts)}"


def marks(module: Module, before: Module | None, tests: Mapping[str, bytes]) -> Iterator[Mark]:
    """Conditions on a variable that the configuration of the tests sets and that no test speaks of.

    A program may well ask for a variable that it speaks of already, but not for the very text that the tests give it.
    A program may also get a new one, so this only asks.
    """
    nodes = list(ast.walk(before.tree)) if before is not None else []
    words = " ".join(one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str))
    had = {one.key for one in _decided(before)} if before is not None else set[str]()
    for one in _decided(module):
        setters = _set_for_all(one.name, tests)
        is_known = _is_spoken_of(one.name, words) and not any(_is_set_to(one, text) for text in setters)
        if setters and not is_known and one.key not in had:
            said = f"`{one.name}` is set by the configuration of the tests, and here it decides what is done."
            yield mark("keyed_by_tests", one.node, said, one.key)


def _set_for_all(name: str, tests: Mapping[str, bytes]) -> list[str]:
    """The configuration, or `conftest.py`, that sets a variable; none where a test names it, for that is about it."""
    read = {path: text.decode("utf-8", "replace") for path, text in tests.items() if name.encode() in text}
    naming = {path: text for path, text in read.items() if _is_spoken_of(name, text)}
    if name in _EVERYWHERE or not all(map(_is_for_all, naming)):
        return []
    return [text for text in naming.values() if re.search(_setting(name), text)]


def _setting(name: str) -> str:
    """`NAME=`, `NAME: `, `["NAME"] =` and `"NAME",`; but not a mere list of names."""
    return rf"(?<!\w){re.escape(name)}(?:\s*[=:]|[\"'\])]+\s*[=:,])"


def _is_set_to(one: _Asked, text: str) -> bool:
    """Whether a text that is asked for is the one that the variable is set to."""
    values = "|".join(map(re.escape, one.texts))
    return bool(values and re.search(rf"{_setting(one.name)}\s*[\"']?(?:{values})(?!\w)", text))


def _is_for_all(path: str) -> bool:
    return is_configuration(path) or PurePosixPath(path).name == "conftest.py"


def _is_spoken_of(name: str, text: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _decided(module: Module) -> Iterator[_Asked]:
    """Each variable that a condition asks for, at once or by the name that it was given."""
    loads = [one for one in ast.walk(module.tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    for node in ast.walk(module.tree):
        if not (name := _variable(module, node)):
            continue
        bound = {target.id for target in _targets(module, node)}
        found = [_decides(module, one) for one in (node, *(one for one in loads if one.id in bound))]
        texts = [one for one in found if one is not None]
        if texts:
            yield _Asked(node, name, frozenset[str]().union(*texts))


def _variable(module: Module, node: ast.AST) -> str:
    """The variable of the environment that an expression reads; empty where it reads none."""
    key: ast.expr | None = None
    if isinstance(node, ast.Call) and node.args and module.dotted(node.func) in _READS:
        key = node.args[0]
    elif isinstance(node, ast.Subscript) and module.dotted(node.value) == "os.environ":
        key = node.slice if isinstance(node.ctx, ast.Load) else None
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        key = node.left if module.dotted(node.comparators[0]) == "os.environ" else None
    return module.text(key) or ""


def _targets(module: Module, node: ast.AST) -> Iterator[ast.Name]:
    """The names that stand for what was read, as it is or made into a truth."""
    outer = module.parents.get(node)
    while isinstance(outer, (*_PASSES_ON, ast.Compare, ast.BoolOp)):
        if isinstance(outer, ast.NamedExpr):
            yield outer.target
        node, outer = outer, module.parents.get(outer)
    targets = outer.targets if isinstance(outer, ast.Assign) else []
    yield from (one for one in targets if isinstance(one, ast.Name))


def _decides(module: Module, node: ast.AST) -> frozenset[str] | None:
    """The texts that a value is held against, none where it is asked for being there; None where nobody asks."""
    if isinstance(node, ast.Compare):
        return frozenset()
    inner, outer = node, module.parents.get(node)
    while isinstance(outer, (*_PASSES_ON, ast.BoolOp)):
        inner, outer = outer, module.parents.get(outer)
    if isinstance(outer, ast.If | ast.IfExp | ast.While):
        return frozenset() if outer.test is inner else None
    if isinstance(outer, ast.Match):
        patterns = (
            one.value for case in outer.cases for one in ast.walk(case.pattern) if isinstance(one, ast.MatchValue)
        )
        return _texts(patterns) if outer.subject is inner else None
    if not isinstance(outer, ast.Compare) or not isinstance(outer.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
        return None
    return _texts((outer.left, *outer.comparators)) or None


def _texts(nodes: Iterable[ast.expr]) -> frozenset[str]:
    values = (value_of(one) for one in nodes)
    return frozenset(text for one in values if one is not NONE_SUCH for text in within(one) if isinstance(text, str))
