"""Read Python code for retrieval: tests, definitions and imports, with Python's own parser."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property

from redstart.toolkit.languages.python.imported_files import MODULE, Modules
from redstart.toolkit.retrieval.code_reader import CodePlace, CodeReader, LineRange, ReadTest
from redstart.toolkit.retrieval.sources import Sources

Function = ast.FunctionDef | ast.AsyncFunctionDef

_NESTED = ("body", "orelse", "handlers", "finalbody", "cases")


class PythonReader(CodeReader):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._trees: dict[str, ast.Module | None] = {}
        self._bound: dict[str, dict[str, str]] = {}

    @cached_property
    def modules(self) -> Modules:
        return Modules(self._sources.files, self.get_tree)

    def get_tree(self, path: str) -> ast.Module | None:
        """Parse a file at most once; None if it is missing, is not a module or does not parse."""
        if path not in self._trees:
            is_module = path in self._sources.files and path.endswith(MODULE)
            self._trees[path] = _parse(self._sources.read_data(path)) if is_module else None
        return self._trees[path]

    def read_test(self, path: str, names: Sequence[str]) -> ReadTest | None:
        tree = self.get_tree(path)
        if tree is None:
            return None
        nodes = _find_nested_nodes(tree, names)
        subject = nodes[-1] if nodes else tree
        helpers = _find_helpers(tree, nodes)
        identifiers = [identifier for node in (subject, *helpers) for identifier in _list_identifiers(node)]
        bound = self._map_imports(tree, path)
        return ReadTest(
            self._place(path, subject),
            sorted(identifiers, key=lambda identifier: identifier not in bound),
            [bound[identifier] for identifier in (identifiers if nodes else bound) if identifier in bound],
            [self._place(path, node) for node in helpers],
        )

    def list_line_ranges(self, path: str) -> list[LineRange]:
        tree = self.get_tree(path)
        ranges: list[LineRange] = []
        bodies: list[Sequence[ast.AST]] = [tree.body] if tree else []
        while bodies:
            for node in bodies.pop():
                if isinstance(node, Function | ast.ClassDef):
                    ranges.append(LineRange(_find_first_line(node), node.end_lineno or node.lineno))
                bodies += [part for name in _NESTED if (part := getattr(node, name, None))]
        return ranges

    def list_imported_files(self, path: str) -> set[str]:
        tree = self.get_tree(path)
        files: set[str] = set()
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Import | ast.ImportFrom):
                files.update(self.modules.map_imports(node, path).values())
                if isinstance(node, ast.Import):
                    files.update(self.modules.find_file(alias.name) for alias in node.names)
        return files

    def _map_imports(self, tree: ast.Module, path: str) -> dict[str, str]:
        """Map the names that the file's imports bind to the files that they come from."""
        if path not in self._bound:
            bound: dict[str, str] = {}
            for node in ast.walk(tree):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    bound |= self.modules.map_imports(node, path)
            self._bound[path] = bound
        return self._bound[path]

    def _place(self, path: str, node: Function | ast.ClassDef | ast.Module) -> CodePlace:
        if isinstance(node, ast.Module):
            return CodePlace(path, 1, max(len(self._sources.read_lines(path)), 1))
        return CodePlace(path, _find_first_line(node), node.end_lineno or node.lineno)


def _parse(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the repo's invalid escapes are not our concern
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _find_first_line(node: Function | ast.ClassDef) -> int:
    return min([node.lineno, *(mark.lineno for mark in node.decorator_list)])


def _find_nested_nodes(tree: ast.Module, names: Sequence[str]) -> list[Function | ast.ClassDef]:
    """Find the nodes of nested names such as `C`, `test_d`, up to the first that is missing."""
    nodes: list[Function | ast.ClassDef] = []
    body: list[ast.stmt] = tree.body
    for name in names:
        node = next((item for item in _list_definitions(body) if item.name == name), None)
        if node is None:
            break
        nodes.append(node)
        body = node.body
    return nodes


def _list_definitions(body: Iterable[ast.stmt]) -> Iterable[Function | ast.ClassDef]:
    return (node for node in body if isinstance(node, Function | ast.ClassDef))


def _find_helpers(tree: ast.Module, nodes: Sequence[Function | ast.ClassDef]) -> list[Function | ast.ClassDef]:
    """Find the fixtures, helpers and setup methods of the same file that the test function uses."""
    if not nodes:
        return []
    names = set(_list_identifiers(nodes[-1])) | {"setUp", "setup_method"}
    scopes: list[list[ast.stmt]] = [tree.body, *(node.body for node in nodes[:-1])]
    return [node for body in scopes for node in _list_definitions(body) if node.name in names and node not in nodes]


def _list_identifiers(node: ast.AST) -> list[str]:
    """List names in source order: called, read, or given as a keyword or an identifier-like string."""
    own_names: set[str] = set()
    names: dict[str, None] = {}
    for item in ast.walk(node):
        match item:
            case ast.Name(id=name, ctx=ast.Load()):
                names[name] = None
            case ast.Name(id=name):
                own_names.add(name)
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
                names[name] = None
            case ast.Constant(value=str(text)) if len(text) < 60 and text.isidentifier():
                names[text] = None
            case _:
                pass
    return [name for name in names if name not in own_names]
