"""Bugs for real packages: one line of a source file made wrong, in ways in which people make lines wrong."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Break(NamedTuple):
    """One change of one file, on one line."""

    kind: str
    file: str
    line: int
    function: str
    """The innermost function around it."""
    text: str
    """The whole file after it."""


class _Edit(NamedTuple):
    kind: str
    node: ast.expr | ast.stmt
    new: str


Maker = Callable[[ast.AST, str], Iterator[_Edit]]


def create_breaks(file: str, text: str, chance: random.Random, limit: int) -> list[Break]:
    """At most `limit` changes of each kind, at places chosen by chance; every one can be compiled but the misspelt."""
    candidates: dict[str, list[tuple[str, _Edit]]] = {}
    source = text.splitlines()
    for function, node in _iter_function_nodes(ast.parse(text)):
        if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno != node.lineno:
            continue  # a bug here is one line
        segment = source[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
        for make in _MAKERS:
            for edit in make(node, segment):
                candidates.setdefault(edit.kind, []).append((function, edit))
    selected: list[Break] = []
    for kind in sorted(candidates):
        for function, edit in chance.sample(candidates[kind], min(limit, len(candidates[kind]))):
            changed = _apply_edit(text, edit)
            if kind == "syntax" or _can_compile(changed):
                selected.append(Break(kind, file, edit.node.lineno, function, changed))
    return selected


def _iter_function_nodes(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                for statement in child.body:
                    yield child.name, statement
                    yield from walk(statement, child.name)
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, function)
            else:
                if function:
                    yield function, child
                yield from walk(child, function)

    yield from walk(tree, "")


def _apply_edit(text: str, edit: _Edit) -> str:
    node = edit.node
    lines = text.splitlines(keepends=True)
    raw = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (raw[: node.col_offset] + edit.new.encode() + raw[node.end_col_offset :]).decode()
    return "".join(lines)


def _can_compile(text: str) -> bool:
    try:
        compile(text, "broken.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _break_attribute(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield _Edit("attribute", node, text + "_")


def _name(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(text) > 2:
        yield _Edit("name", node, text[:-1])


def _break_return(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.Return) and node.value is not None and text != "return None":
        yield _Edit("nothing", node, "return None")


_OPERATORS = (
    (" + ", " - "),
    (" < ", " <= "),
    (" > ", " >= "),
    (" == ", " != "),
    (" and ", " or "),
    (" in ", " not in "),
)


def _swap_operator(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
        for operator, replacement in _OPERATORS:
            if text.count(operator) == 1 and f"not{operator}" not in text:
                yield _Edit("operator", node, text.replace(operator, replacement))


def _change_constant(node: ast.AST, text: str) -> Iterator[_Edit]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield _Edit("flag", node, repr(not node.value))
    elif isinstance(node.value, int):
        yield _Edit("number", node, repr(node.value + 1))
    elif isinstance(node.value, str) and node.value and text[0] in "'\"" and len(text) < 40:
        yield _Edit("text", node, repr(node.value + "x"))


def _break_subscript(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        if isinstance(node.slice.value, int):
            yield _Edit("index", node, text.replace(f"[{node.slice.value}]", "[97]"))
        elif isinstance(node.slice.value, str):
            yield _Edit("key", node, text.replace(node.slice.value, node.slice.value + "_"))


def _drop_argument(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.Call) and len(node.args) > 1 and not node.keywords and text.endswith(")"):
        arguments = ", ".join(ast.unparse(arg) for arg in node.args[:-1])
        yield _Edit("argument", node, f"{ast.unparse(node.func)}({arguments})")


def _break_statement(node: ast.AST, text: str) -> Iterator[_Edit]:
    if isinstance(node, ast.Raise):
        yield _Edit("silent", node, "pass")
    elif isinstance(node, ast.Assign | ast.Expr) and isinstance(node.value, ast.Call):
        yield _Edit(
            "left out", node, "pass" if isinstance(node, ast.Expr) else f"{text.partition('=')[0].strip()} = None"
        )
    elif isinstance(node, ast.Return) and node.value is not None and text.endswith(")"):
        yield _Edit("syntax", node, text[:-1])


_MAKERS: tuple[Maker, ...] = (
    _break_attribute,
    _name,
    _break_return,
    _swap_operator,
    _change_constant,
    _break_subscript,
    _drop_argument,
    _break_statement,
)
