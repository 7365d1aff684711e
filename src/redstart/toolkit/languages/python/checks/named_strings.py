"""Find the strings that Python code gives a name to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from redstart.toolkit.checks.source import NamedString


def find_named_strings(node: ast.AST) -> Iterator[NamedString]:
    """Yield strings with the names they are bound to by assignment, argument, default, key or comparison."""
    pairs: list[tuple[str, ast.expr | None]] = []
    match node:
        case ast.Assign():
            pairs = [(_name(target), node.value) for target in node.targets]
        case ast.AnnAssign():
            pairs = [(_name(node.target), node.value)]
        case ast.keyword():
            pairs = [(node.arg or "", node.value)]
        case ast.Dict():
            pairs = [(_name(key), value) for key, value in zip(node.keys, node.values, strict=True) if key]
        case ast.arguments():
            parameters = [*node.posonlyargs, *node.args]
            pairs = [
                (item.arg, value)
                for item, value in zip(parameters[len(parameters) - len(node.defaults) :], node.defaults, strict=True)
            ]
            pairs += [
                (kwonlyarg.arg, value) for kwonlyarg, value in zip(node.kwonlyargs, node.kw_defaults, strict=True)
            ]
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            pairs = [(_name(node.left), node.comparators[0]), (_name(node.comparators[0]), node.left)]
        case ast.Call(args=[ast.Constant(value=str() as key), ast.Constant() as default]):
            function_name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function_name in ("get", "getenv", "setdefault", "putenv", "config", "env"):
                pairs = [(key, default)]
        case ast.Call():
            pairs = [("address", item) for item in node.args if isinstance(item, ast.Constant)]
        case _:
            return
    for name, value in pairs:
        if isinstance(value, ast.BoolOp):  # os.getenv("KEY") or "…"
            value = value.values[-1]
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in ("encode", "strip")
        ):
            value = value.func.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str | bytes) and name:
            text = value.value if isinstance(value.value, str) else value.value.decode(errors="replace")
            yield NamedString(name, text, value.lineno, isinstance(node, ast.Compare))


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Constant(value=str() as value):
            return value
        case ast.Subscript():
            return _name(node.slice)
        case _:
            return ""
