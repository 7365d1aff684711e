"""Read a Python test file as statements with the byte offsets at which they can be altered."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from redstart.toolkit.languages.python.syntax import Function

_CATCH_ALL = frozenset({"AssertionError", "Exception", "BaseException"})
_SUPPRESSING = frozenset({"suppress", "raises", "assertRaises"})
FAILING_STATEMENT = 'raise AssertionError("~")'
"""A statement that always fails."""


class FrameStatement(NamedTuple):
    """A statement in a test's own frame."""

    statement: ast.stmt
    conditional: bool
    """Whether the statement is in a branch or a loop."""


class SourceEdit(NamedTuple):
    start: int
    end: int
    new: bytes


class TestFile:
    """A parsed test file. Raises `SyntaxError` or `ValueError` if the text does not parse."""

    __test__ = False

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._starts = (0, *accumulate(len(line) for line in text.splitlines(keepends=True)))

    def find_function(self, name: str) -> Function | None:
        """Find a test by name, `test_a` or `TestB::test_a`, including one that a class inherits in the same file."""
        parts = name.replace("::", ".").split(".")
        body: Sequence[ast.stmt] = self.tree.body
        for part in parts[:-1]:
            inside = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == part), None)
            if inside is None:
                break
            body = inside.body
        for node in body:
            if isinstance(node, Function) and node.name == parts[-1]:
                return node
        matches = [node for node in ast.walk(self.tree) if isinstance(node, Function) and node.name == parts[-1]]
        return matches[0] if len(matches) == 1 else None

    def find_statements(self, test: Function) -> Iterator[FrameStatement]:
        """Iterate over the statements whose failure fails the test: not those that are caught or run elsewhere."""
        yield from _walk_statements(test.body, conditional=False)

    def find_innermost(self, line: int) -> FrameStatement | None:
        """Find the innermost statement at a line, anywhere in the file."""
        result: FrameStatement | None = None
        waiting: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        while waiting:
            node, conditional = waiting.pop()
            is_conditional = conditional or isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.Match)
            is_conditional = is_conditional and not isinstance(node, Function)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt) and child.lineno <= line <= (child.end_lineno or child.lineno):
                    if not isinstance(child, ast.ClassDef | Function):
                        result = FrameStatement(child, is_conditional)
                    waiting.append((child, is_conditional))
                elif isinstance(child, ast.ExceptHandler | ast.match_case):
                    waiting.append((child, True))
        return result

    def insert_before(self, statement: ast.stmt, code: str) -> SourceEdit:
        """Insert code before a statement, on a separate line unless other code precedes the statement on its line."""
        first_node = next(iter(getattr(statement, "decorator_list", ())), statement)
        start = self._starts[first_node.lineno - 1]
        indent = self.text[start : start + statement.col_offset]
        if indent.strip():
            offset = start + statement.col_offset
            return SourceEdit(offset, offset, f"{code}; ".encode())
        return SourceEdit(start, start, indent + code.encode() + b"\n")

    def replace(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt, new: bytes) -> SourceEdit:
        return SourceEdit(self.start(first), self.end(last), new)

    def get_source(self, node: ast.expr | ast.stmt) -> bytes:
        return self.text[self.start(node) : self.end(node)]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def get_line_start(self, line: int) -> int:
        return self._starts[line - 1]


def can_only_fail(statement: ast.stmt) -> bool:
    """Whether a statement always fails: `pytest.fail()`, `raise`, `assert False`. No honest fix reaches it."""
    match statement:
        case ast.Raise():
            return True
        case ast.Assert(test=ast.Constant(value=value)):
            return not value
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="fail" | "skip" | "xfail"))):
            return True
        case _:
            return False


def _walk_statements(body: Sequence[ast.stmt], *, conditional: bool) -> Iterator[FrameStatement]:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.If() | ast.While() | ast.For() | ast.AsyncFor():
                yield from _walk_statements(statement.body, conditional=True)
                yield from _walk_statements(statement.orelse, conditional=True)
            case ast.Try():
                if not statement.handlers:
                    yield from _walk_statements(statement.body, conditional=conditional)
                yield from _walk_statements(statement.finalbody, conditional=conditional)
            case ast.With() | ast.AsyncWith() if any(can_catch(item.context_expr) for item in statement.items):
                yield FrameStatement(statement, conditional)
            case ast.With() | ast.AsyncWith():
                yield FrameStatement(statement, conditional)
                yield from _walk_statements(statement.body, conditional=conditional)
            case _:
                yield FrameStatement(statement, conditional)


def can_catch(context: ast.expr) -> bool:
    """Whether such a block catches or may catch exceptions: `raises(X)`, `suppress(X)`."""
    if not isinstance(context, ast.Call):
        return False
    name = context.func.attr if isinstance(context.func, ast.Attribute) else getattr(context.func, "id", "")
    return name in _SUPPRESSING


def is_catch_all(kind: ast.expr) -> bool:
    """Whether a failing assertion also raises the expected exception."""
    return any(isinstance(node, ast.Name) and node.id in _CATCH_ALL for node in ast.walk(kind))
