"""Resolve names in a Python file through imports, aliases and lookups by literal strings."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from redstart.toolkit.languages.python.syntax import Function

_LOOKED_UP = frozenset(
    [
        "exit",
        "quit",
        "eval",
        "exec",
        "compile",
        "__import__",
        "getattr",
        "setattr",
        "delattr",
        "vars",
        "globals",
        "open",
        "hash",
        "__builtins__",
        "SystemExit",
    ]
)
"""The builtins that rules check; they count unless the file binds the name itself."""
_IMPORTERS = frozenset({"builtins.__import__", "importlib.import_module", "importlib.__import__"})
_PASSES = 3
"""The maximum number of steps for which a chain of aliases (`a = os; b = a._exit`) is followed."""


class ParsedModule:
    """A parsed file: its tree, its nodes (as `ast.walk` orders them), each node's parent, and what its names mean."""

    def __init__(self, path: str, source: bytes) -> None:
        """Parse the source. Raises `SyntaxError` or `ValueError` if this interpreter cannot parse it."""
        self.path = path
        self.tree = _with_constants(ast.parse(source))
        self.nodes = tuple(ast.walk(self.tree))
        self.functions = tuple(node for node in self.nodes if isinstance(node, Function))
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in self.nodes for child in ast.iter_child_nodes(node)
        }
        self._aliases: dict[str, str] = {}
        self._bound = _bound(self.nodes)
        self._follow_imports()
        for _ in range(_PASSES):
            self._follow_assignments()

    def get_full_name(self, node: ast.AST) -> str:
        """Return the full name of what an expression refers to, for example `os._exit`; empty if it is not known."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            base = self.get_full_name(node.value)
            return f"{base}.{node.attr}" if base else ""
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return self._resolve_subscript(node)
        return ""

    def evaluate_text(self, node: ast.AST | None) -> str | None:
        """Evaluate a string expression of literals, so that `"ex" + "it"` hides nothing; None for other expressions."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.evaluate_text(node.left), self.evaluate_text(node.right)
            return None if left is None or right is None else left + right
        if isinstance(node, ast.JoinedStr):
            parts = [
                self.evaluate_text(item.value if isinstance(item, ast.FormattedValue) else item) for item in node.values
            ]
            return None if None in parts else "".join(item for item in parts if item is not None)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            value = self.evaluate_text(node.value)
            return value[::-1] if value is not None and _is_reversal(node.slice) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            return self._evaluate_join(node)
        return None

    def iter_ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Iterate over the enclosing nodes of a node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def find_function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """Find the innermost function around a node; None at module level."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        return next((item for item in self.iter_ancestors(node) if isinstance(item, kinds)), None)

    def _name(self, name: str) -> str:
        if name in self._aliases:
            return self._aliases[name]
        return f"builtins.{name}" if name in _LOOKED_UP and name not in self._bound else ""

    def _call(self, node: ast.Call) -> str:
        function_name = self.get_full_name(node.func)
        argument = self.evaluate_text(node.args[0]) if node.args else None
        if function_name in _IMPORTERS and argument is not None:
            return argument
        if function_name == "builtins.getattr" and len(node.args) > 1:
            base, name = self.get_full_name(node.args[0]), self.evaluate_text(node.args[1])
            return f"{base}.{name}" if base and name else ""
        if function_name == "builtins.vars" and node.args:
            base = self.get_full_name(node.args[0])
            return f"{base}.__dict__" if base else ""
        return f"{function_name}()" if function_name == "builtins.globals" else ""

    def _resolve_subscript(self, node: ast.Subscript) -> str:
        base, key = self.get_full_name(node.value), self.evaluate_text(node.slice)
        if key is None or not base:
            return ""
        if base == "sys.modules":
            return key
        if base.endswith(".__dict__"):
            return f"{base.removesuffix('.__dict__')}.{key}"
        return self._name(key) or key if base == "builtins.globals()" else ""

    def _evaluate_join(self, node: ast.Call) -> str | None:
        mark = self.evaluate_text(node.func.value) if isinstance(node.func, ast.Attribute) else None
        parts = node.args[0] if len(node.args) == 1 else None
        if mark is None or not isinstance(parts, ast.List | ast.Tuple):
            return None
        texts = [self.evaluate_text(elt) for elt in parts.elts]
        return None if None in texts else mark.join(item for item in texts if item is not None)

    def _follow_imports(self) -> None:
        for node in self.nodes:
            for item in list_imported_names(node):
                if item.name == "*":
                    continue
                self._aliases[item.bound] = item.full_name

    def _follow_assignments(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = node.targets[0], node.value
            elif isinstance(node, ast.NamedExpr):
                target, value = node.target, node.value
            else:
                continue
            if isinstance(target, ast.Name) and (full_name := self.get_full_name(value)):
                self._aliases.setdefault(target.id, full_name)


class _Constants(ast.NodeTransformer):
    def __init__(self, constants: dict[str, ast.Constant]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.AST:
        constant = self._constants.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return ast.copy_location(ast.Constant(constant.value), node) if constant is not None else node


def _with_constants(tree: ast.Module) -> ast.Module:
    """Replace each name that stands for one number or string throughout the file with that constant."""
    constants: dict[str, ast.Constant] = {}
    stored: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            stored[node.id] += 1
        elif isinstance(node, ast.arg):
            stored[node.arg] += 1
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored[node.name] += 1
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node.value.value, str | int | float):
                constants |= dict.fromkeys(names, node.value)
    assigned_once = {name: value for name, value in constants.items() if stored[name] == 1}
    return cast(ast.Module, _Constants(assigned_once).visit(tree)) if assigned_once else tree


class ImportedName(NamedTuple):
    """A name that an import binds; `full_name` starts with a dot if the import is relative."""

    bound: str
    full_name: str
    module: str
    name: str


def list_imported_names(node: ast.AST) -> Iterator[ImportedName]:
    """Yield the names that an import statement binds; nothing for other nodes."""
    if isinstance(node, ast.Import):
        for item in node.names:
            top = item.name.partition(".")[0]
            yield ImportedName(item.asname or top, item.name if item.asname else top, item.name, item.name)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for item in node.names:
            yield ImportedName(item.asname or item.name, f"{module}.{item.name}", module, item.name)


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _is_reversal(piece: ast.Slice) -> bool:
    step = piece.step
    if piece.lower is not None or piece.upper is not None or not isinstance(step, ast.UnaryOp):
        return False
    return isinstance(step.op, ast.USub) and isinstance(step.operand, ast.Constant) and step.operand.value == 1
