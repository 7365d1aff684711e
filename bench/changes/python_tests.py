"""Read and edit the functions of Python test files as text, so that all other lines stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from verify_heldout.sabotages import TrueFix

Function = ast.FunctionDef | ast.AsyncFunctionDef


class TestFunction(NamedTuple):
    """A test function in a file."""

    path: str
    name: str
    """With the classes that contain it, as in a test ID."""
    node: Function
    text: str

    @property
    def id(self) -> str:
        return f"{self.path}::{self.name}"

    @property
    def start(self) -> int:
        """The first line, decorators included, counted from 0."""
        return min(node.lineno for node in (self.node, *self.node.decorator_list)) - 1


def list_test_functions(path: str, data: bytes) -> list[TestFunction]:
    """List the test functions of a file; none if it is not valid Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return []
    return list(_walk(path, tree.body, "", data.decode().splitlines(keepends=True)))


def _walk(path: str, body: list[ast.stmt], prefix: str, lines: list[str]) -> Iterator[TestFunction]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _walk(path, node.body, f"{prefix}{node.name}::", lines)
        elif isinstance(node, Function) and node.name.startswith("test"):
            function = TestFunction(path, prefix + node.name, node, "")
            yield function._replace(text="".join(lines[function.start : node.end_lineno]))


def list_edited(fix: TrueFix) -> list[str]:
    """List the test functions that the fix edits, by ID."""
    edited: list[str] = []
    for path in fix.tests:
        before = {item.id: item.text for item in list_test_functions(path, fix.before.get(path, b""))}
        after = list_test_functions(path, fix.after.get(path, b""))
        edited += [item.id for item in after if before.get(item.id, item.text) != item.text]
    return edited


def list_proven(fix: TrueFix) -> list[TestFunction]:
    """List the functions of the proving tests."""
    ids = {id_.partition("[")[0] for id_ in fix.proven}
    functions = (item for path in fix.tests for item in list_test_functions(path, fix.after.get(path, b"")))
    return [item for item in functions if item.id in ids]


def list_old(fix: TrueFix) -> list[TestFunction]:
    """List tests that the fix leaves as they are, those of its own test files first. None has a decorator."""
    others = [path for path in fix.after if _is_test_file(path) and path not in fix.tests]
    found: list[TestFunction] = []
    for path in (*fix.tests, *sorted(others)):
        before = {item.name: item.text for item in list_test_functions(path, fix.before.get(path, b""))}
        functions = list_test_functions(path, fix.after.get(path, b""))
        found += [
            item
            for item in functions
            if before.get(item.name) == item.text and not item.node.decorator_list and "skip" not in item.text
        ]
    return found


def _is_test_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


class Comparison(NamedTuple):
    """An assertion of the form `left == right`."""

    statement: ast.Assert
    left: ast.expr
    right: ast.expr


def list_comparisons(function: TestFunction) -> list[Comparison]:
    """List the assertions of a test that compare two values, of which the second is written out."""
    comparisons: list[Comparison] = []
    for node in ast.walk(function.node):
        test = node.test if isinstance(node, ast.Assert) else None
        if not isinstance(node, ast.Assert) or not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        if isinstance(test.ops[0], ast.Eq) and _is_written_out(test.comparators[0]):
            comparisons.append(Comparison(node, test.left, test.comparators[0]))
    return comparisons


def _is_written_out(node: ast.expr) -> bool:
    try:
        return ast.literal_eval(node) is not None
    except (ValueError, TypeError, SyntaxError):
        return False


def edit_nodes(data: bytes, edits: Mapping[ast.expr | ast.stmt, str]) -> bytes:
    """Return the text with other text in place of these nodes, which do not overlap."""
    lines = data.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))

    def locate(node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = offsets[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or node.col_offset)
        return offsets[node.lineno - 1] + node.col_offset, end

    for node, text in sorted(edits.items(), key=lambda item: locate(item[0]), reverse=True):
        start, end = locate(node)
        data = data[:start] + text.encode() + data[end:]
    return data


def insert_line(data: bytes, number: int, text: str) -> bytes:
    """Return the text with this line before the line of that number, counted from 0."""
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:number], f"{text}\n".encode(), *lines[number:]])


def drop_function(data: bytes, function: TestFunction) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[: function.start], *lines[function.node.end_lineno :]])


def read_source(data: bytes, node: ast.expr) -> str:
    return ast.get_source_segment(data.decode(), node) or ""
