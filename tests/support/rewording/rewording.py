"""Rewords all of redstart's texts for people as its modules are imported.

Each place in the code gets a different wording, so that no two places have the same text. Texts that are compared,
searched for or split at stay unchanged: code that recognizes one of redstart's own texts by its wording then fails to
do so and behaves differently.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

PACKAGE = "redstart"
UNTOUCHED = (
    "redstart.toolkit.prompts",
    "redstart.toolkit.model_tools.tool_calls",
    "redstart.ports.sql",
    "redstart.testing",
    "redstart.app.demo",
    "redstart.cli.texts",
)
"""Modules with texts that models, databases and argument parsers read."""
READS = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"),
    *("find", "rfind", "index", "rindex", "count", "replace", "strip", "lstrip", "rstrip", "get", "pop"),
    *("compile", "match", "fullmatch", "search", "sub", "findall", "finditer", "escape"),
    *("cast", "TypeVar", "TypeAdapter", "frozenset", "set", "getattr", "execute", "text"),
}
"""Functions whose string arguments are search terms, or are not prose."""
_WORDS = re.compile(r"(?<![\w-])[a-z]{2,}(?:[,;:]? |'s )\(?[a-z]{2,}(?![\w-])", re.IGNORECASE)
_CODE = re.compile(r"[\n{}<>=\\|^$#@*\[\]]|^(?:import|from|def|class|return|select|with|pragma|create) ", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}")
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_NAME = "__reworded__"


def is_for_people(text: str) -> bool:
    """Return whether a text reads as prose."""
    return _WORDS.search(text) is not None and _CODE.search(text) is None


def reword(text: object, place: str) -> object:
    """Reword prose; return anything else unchanged."""
    return f"{_swap_case(text)} ({place})" if type(text) is str and is_for_people(text) else text


def _swap_case(text: str) -> str:
    return _WORD.sub(lambda match: match[0].swapcase(), text)


class Rewording(ast.NodeTransformer):
    """Rewords a module's texts. A module constant is reworded where it is used, not where it is defined."""

    def __init__(self, module: str) -> None:
        self._module = module.removeprefix(f"{PACKAGE}.")

    def _place(self, node: ast.expr) -> str:
        return f"{self._module}:{node.lineno}:{node.col_offset}"

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, str) or not is_for_people(node.value):
            return node
        return ast.copy_location(ast.Constant(str(reword(node.value, self._place(node)))), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "it" for part in node.values)
        values: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                values.append(ast.copy_location(self._keep_format(part), part))
            elif isinstance(part, ast.Constant) and is_for_people(text):
                values.append(ast.copy_location(ast.Constant(_swap_case(str(part.value))), part))
            else:
                values.append(part)
        if is_for_people(text):
            values.append(ast.copy_location(ast.Constant(f" ({self._place(node)})"), node))
        return ast.copy_location(ast.JoinedStr(values), node)

    def _keep_format(self, part: ast.FormattedValue) -> ast.FormattedValue:
        return ast.FormattedValue(self.visit(part.value), part.conversion, part.format_spec)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or not _CONSTANT.fullmatch(node.id):
            return node
        call = ast.Call(ast.Name(_NAME, ast.Load()), [node, ast.Constant(self._place(node))], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = [
            self._keep_node(statement) if _defines_text(statement) else self.visit(statement) for statement in node.body
        ]
        return node

    def _keep_node(self, node: ast.stmt) -> ast.stmt:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return node if isinstance(node.value, ast.Constant) else self._visit_children(node)

    def _visit_children(self, node: ast.stmt) -> ast.stmt:
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Reword only texts in methods: enum values and field defaults are data."""
        node.body = [
            self.visit(statement) if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) else statement
            for statement in node.body
        ]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        for case in node.cases:
            case.body = [self.visit(statement) for statement in case.body]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in READS:
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            return node
        self.generic_visit(node)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        node.values = [self.visit(value) for value in node.values]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        return node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._visit_body(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._visit_body(node)

    def _visit_body(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        node.body = [self.visit(statement) for statement in node.body]
        return node


def _defines_text(node: ast.stmt) -> bool:
    """Return whether a statement defines a text constant."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr)


class RewordingLoader(SourceFileLoader):
    """Compiles each time: reworded code is never cached."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = Rewording(fullname).visit(ast.parse(self.get_data(path)))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class RewordingFinder(MetaPathFinder):
    def __init__(self, find: Callable[..., ModuleSpec | None]) -> None:
        self._find = find

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{PACKAGE}.") or fullname.startswith(UNTOUCHED):
            return None
        spec = self._find(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = RewordingLoader(fullname, spec.loader.path)
        return spec


def install() -> None:
    setattr(builtins, _NAME, reword)
    sys.meta_path.insert(0, RewordingFinder(PathFinder.find_spec))
