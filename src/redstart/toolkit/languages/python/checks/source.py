"""Represent a Python file for the rules: its syntax tree, and what its names stand for."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from redstart.toolkit.checks.source import MAX_FILE_BYTES, NamedString, Source
from redstart.toolkit.languages.python.checks.named_strings import find_named_strings

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class PythonSource(Source):
    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None if the file does not parse or is too large to be written by hand."""
        if len(self.data) > MAX_FILE_BYTES:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree except markers such as `Load`, parents before children; walked once for all rules."""
        if self.tree is None:
            return []
        collected: list[ast.AST] = [self.tree]
        for node in collected:  # grows during the loop
            for name in node._fields:
                value: object = getattr(node, name, None)
                if isinstance(value, list):
                    collected.extend(item for item in cast("list[object]", value) if isinstance(item, ast.AST))
                elif isinstance(value, ast.AST) and name not in ("ctx", "op"):
                    collected.append(value)
        return collected

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        sorted_out: dict[type[ast.AST], list[ast.AST]] = {}
        for node in self.nodes:
            sorted_out.setdefault(type(node), []).append(node)
        return sorted_out

    def iter_nodes(self, *kinds: type[Node]) -> Iterator[Node]:
        """Iterate over every node of these types."""
        for kind in kinds:
            yield from cast("list[Node]", self._by_type.get(kind, ()))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def names(self) -> Names:
        top = self.tree.body if self.tree is not None else []
        defined_names = (
            item.name for item in top if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        )
        return Names.from_nodes(
            [*self.iter_nodes(ast.Import), *self.iter_nodes(ast.ImportFrom), *self.iter_nodes(ast.Assign)],
            frozenset(defined_names),
        )

    def list_named_strings(self) -> Iterator[NamedString]:
        kinds = (ast.Assign, ast.AnnAssign, ast.keyword, ast.Dict, ast.arguments, ast.Compare, ast.Call)
        return (string for node in self.iter_nodes(*kinds) for string in find_named_strings(node))


@dataclass(frozen=True)
class Names:
    """What the names of a module stand for, according to imports and plain assignments such as `run = os.system`."""

    full_names: dict[str, str] = field(default_factory=dict[str, str])
    own_definitions: frozenset[str] = frozenset()
    """Functions and classes of the module, which hide builtins of the same name."""

    @classmethod
    def from_nodes(
        cls, nodes: Sequence[ast.Import | ast.ImportFrom | ast.Assign], defined_names: frozenset[str]
    ) -> Names:
        known_names: dict[str, str] = {}
        aliases: list[tuple[str, ast.expr]] = []
        for node in nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    known_names[name.asname or name.name.partition(".")[0]] = (
                        name.name if name.asname else name.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for name in node.names:
                    known_names[name.asname or name.name] = f"{module}.{name.name}"
            elif isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Attribute | ast.Name):
                aliases.append((node.targets[0].id, node.value))
        names = cls(known_names, defined_names)
        modules = {item.partition(".")[0] for item in known_names.values()}
        for name, value in aliases:
            full_name = names.get_full_name(value)
            stands_for = full_name.partition(".")[0] in modules
            if name not in known_names and (stands_for or full_name in _CALLED_BY_ALIAS):
                known_names[name] = full_name
        return names

    def get_full_name(self, node: ast.expr) -> str:
        """Return the full name of `a.b.c`, its first part as imported; `?` stands for an expression without a name."""
        if isinstance(node, ast.Name):
            return self.full_names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.get_full_name(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return f"{self.get_full_name(node.func)}()"
        return "?"

    def get_called_name(self, call: ast.Call) -> str:
        """Return the full name of the called function; for a builtin that the module hides, a name unknown to rules."""
        name = self.get_full_name(call.func)
        return f".{name}" if name in self.own_definitions else name.removeprefix("builtins.")


_CALLED_BY_ALIAS = frozenset({"eval", "exec"})


def get_keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword argument, also from a literal `**{...}`; None if it is not passed."""
    for item in call.keywords:
        if item.arg == name:
            return item.value
        if item.arg is None and isinstance(item.value, ast.Dict):
            for key, value in zip(item.value.keys, item.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return value
    return None


def get_argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """Return the argument at a position or with one of these names; None if it is not passed."""
    if len(call.args) > place and not any(isinstance(arg, ast.Starred) for arg in call.args[: place + 1]):
        return call.args[place]
    return next((value for name in names if (value := get_keyword(call, name)) is not None), None)


def is_constant(node: ast.expr | None, *values: object) -> bool:
    """Whether a node is a constant; with `values`, whether it is one of these."""
    return isinstance(node, ast.Constant) and (not values or any(node.value is item for item in values))
