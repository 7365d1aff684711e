"""Make small changes to Python code, except where tests need not notice: messages, defaults, annotations, logging,
and checks of the Python version or the system."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from redstart.toolkit.honesty import mutation as words
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.languages.python.syntax import is_python

_NEGATED_OPERATORS = {
    **{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"},
    **{"in": "not in", "not in": "in", "is": "is not", "is not": "is"},
}
_CALCULATION: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
}
_LOGGING_CALL = re.compile(r"^(?:warnings\.warn|log(?:ger|ging)?\.\w+|_log(?:ger)?\.\w+|self\._?log(?:ger)?\.\w+)$")
_PLATFORM_NAMES = {
    *("TYPE_CHECKING", "typing.TYPE_CHECKING", "sys.version_info", "sys.platform", "sys.implementation.name"),
    *("os.name", "platform.system", "platform.python_implementation"),
}
"""Conditions with a fixed result where the tests run; negating one usually breaks an import."""
_UNSHOWN = ("__repr__", "__hash__")


def create_python_mutants(path: str, text: bytes) -> list[Mutant]:
    """Make all mutants of a file; none if it does not parse."""
    try:
        tree = ast.parse(text)
        mutants = list(_Walk(path, text).visit(tree))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [item for item in mutants if is_python(item.apply_to(text))]


class _Walk:
    def __init__(self, path: str, text: bytes) -> None:
        self._path, self._text = path, text
        self._starts = (0, *accumulate(len(line) for line in text.splitlines(keepends=True)))
        self._enclosing_names: tuple[str, ...] = ()
        self._loops = 0

    def visit(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from self._visit_definition(node)
                return
            case ast.If() if _collect_names(node.test) & {"__name__"}:
                return
            case ast.If() if _collect_names(node.test) & _PLATFORM_NAMES:
                yield from self._visit_all((*node.body, *node.orelse))
                return
            case ast.IfExp() if _collect_names(node.test) & _PLATFORM_NAMES:
                yield from self._visit_all((node.body, node.orelse))
                return
            case ast.Expr() if isinstance(node.value, ast.Call) and _LOGGING_CALL.match(ast.unparse(node.value.func)):
                return
            case ast.While():
                self._loops += 1
                yield from self._visit_all(node.body)
                self._loops -= 1
                yield from self._visit_all(node.orelse)
                return
            case ast.Raise():
                yield self._replace_nodes(node, node, b"pass", words.NOT_RAISED)
                return
            case ast.AnnAssign():
                yield from self.visit(node.value) if node.value else ()
                return
            case ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
                return
            case _:
                yield from self._mutate_node(node)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.keyword | ast.arguments):
                yield from self.visit(child)

    def _visit_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[Mutant]:
        if node.name in _UNSHOWN:
            return
        outer_scope, loops = self._enclosing_names, self._loops
        self._enclosing_names, self._loops = (*outer_scope, node.name), 0
        has_docstring = ast.get_docstring(node, clean=False) is not None
        yield from self._visit_all(node.body[1:] if has_docstring else node.body)
        self._enclosing_names, self._loops = outer_scope, loops

    def _visit_all(self, nodes: Sequence[ast.AST]) -> Iterator[Mutant]:
        for node in nodes:
            yield from self.visit(node)

    def _mutate_node(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of this node itself."""
        match node:
            case ast.Compare():
                yield from self._mutate_comparison(node)
            case ast.BinOp() if type(node.op) in _CALCULATION and not _is_template(node):
                yield self._replace_operator(node.left, node.right, _CALCULATION[type(node.op)], words.CALCULATION)
            case ast.BoolOp():
                replacement = "or" if isinstance(node.op, ast.And) else "and"
                yield self._replace_operator(node.values[0], node.values[1], replacement, words.LOGIC)
            case ast.UnaryOp() if isinstance(node.op, ast.Not):
                yield self._replace_nodes(node, node, self._get_source(node.operand), words.CONDITION)
            case ast.If() | ast.IfExp():
                yield self._replace_nodes(
                    node.test, node.test, b"(not (%s))" % self._get_source(node.test), words.CONDITION
                )
            case ast.Constant():
                yield from self._mutate_constant(node)
            case ast.Return() if node.value is not None and not _is_nothing(node.value):
                yield self._replace_nodes(node.value, node.value, b"None", words.NOTHING_BACK)
            case ast.Expr() if isinstance(node.value, ast.Call) and not self._loops:
                yield self._replace_nodes(node, node, b"pass", words.LEFT_OUT)
            case ast.AugAssign() if not self._loops:
                yield self._replace_nodes(node, node, b"pass", words.LEFT_OUT)
            case _:
                return

    def _mutate_comparison(self, node: ast.Compare) -> Iterator[Mutant]:
        """Negate comparisons. Loop conditions are excluded by the caller, because they could then run forever."""
        for left, right in zip((node.left, *node.comparators), node.comparators, strict=False):
            operator = " ".join(
                self._text[self._end(left) : self._start(right)].decode(errors="replace").strip(" ()\\\n").split()
            )
            if operator in _NEGATED_OPERATORS:
                yield self._replace_operator(left, right, _NEGATED_OPERATORS[operator], words.NEGATED_COMPARISON)
            if operator in words.MOVED_BORDERS:
                yield self._replace_operator(left, right, words.MOVED_BORDERS[operator], words.BORDER)
            for item in (left, right):
                if isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value:
                    yield self._replace_nodes(item, item, b'"other"', words.CONSTANT)

    def _mutate_constant(self, node: ast.Constant) -> Iterator[Mutant]:
        if isinstance(node.value, bool):
            yield self._replace_nodes(node, node, str(not node.value).encode(), words.CONSTANT)
        elif isinstance(node.value, int | float):
            yield self._replace_nodes(node, node, repr(node.value + 1).encode(), words.CONSTANT)

    def _replace_operator(self, left: ast.expr, right: ast.expr, replacement: str, kind: str) -> Mutant:
        """Replace only the operator: parentheses around its operands stay."""
        start, end = self._end(left), self._start(right)
        gap = self._text[start:end]
        operator = re.search(rb"not\s+in|is\s+not|[^\s()\\#]+", gap)
        operator_start, to = (start + operator.start(), start + operator.end()) if operator else (start, end)
        return self._cut(left, operator_start, to, replacement.encode(), kind)

    def _replace_nodes(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt, text: bytes, kind: str) -> Mutant:
        return self._cut(first, self._start(first), self._end(last), text, kind)

    def _cut(self, node: ast.expr | ast.stmt, start: int, end: int, text: bytes, kind: str) -> Mutant:
        return Mutant(self._path, start, end, text, node.lineno, kind, ".".join(self._enclosing_names))

    def _get_source(self, node: ast.expr) -> bytes:
        return self._text[self._start(node) : self._end(node)]

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)


def _collect_names(test: ast.expr) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(test) if isinstance(node, ast.Name | ast.Attribute)}


def _is_template(node: ast.BinOp) -> bool:
    """Whether `%` formats a string, as in `"%s" % name`, instead of calculating."""
    return any(
        isinstance(item, ast.JoinedStr) or (isinstance(item, ast.Constant) and isinstance(item.value, str))
        for item in (node.left, node.right)
    )


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
