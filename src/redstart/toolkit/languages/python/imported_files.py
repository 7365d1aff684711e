"""Resolve Python imports to files."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Set
from posixpath import dirname

MODULE = ".py"
_FORWARDS = 3
"""The maximum number of packages through which a re-exported name is followed."""
_ROOTS = ("src/", "lib/", "python/")


class Modules:
    """The files of a tree's modules, by dotted name."""

    def __init__(self, files: Set[str], tree: Callable[[str], ast.Module | None]) -> None:
        self._files, self._tree = files, tree
        self._paths: dict[str, str] = {}
        for path in sorted((path for path in files if path.endswith(MODULE)), key=lambda file: (len(file), file)):
            for name in self._list_module_names(path):
                self._paths.setdefault(name, path)

    def find_file(self, module: str) -> str:
        """Find the file of a module; empty if the tree has no such module."""
        return self._paths.get(module, "")

    def map_imports(self, node: ast.Import | ast.ImportFrom, importer: str) -> dict[str, str]:
        """Map the names that an import binds to the files that they come from, without names from outside the tree."""
        bound: dict[str, str] = {}
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = self.find_file(alias.name)
        else:
            module = self._resolve_module(node, importer)
            for alias in node.names:
                bound[alias.asname or alias.name] = self._find_origin(module, alias.name, _FORWARDS)
        return {name: path for name, path in bound.items() if path}

    def _find_origin(self, module: str, name: str, forwards: int) -> str:
        submodule = self.find_file(f"{module}.{name}")
        package = self.find_file(module)
        if submodule or not package or not package.endswith("__init__.py") or forwards == 0:
            return submodule or package
        tree = self._tree(package)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return (
                            self._find_origin(self._resolve_module(node, package), alias.name, forwards - 1) or package
                        )
        return package

    def _resolve_module(self, node: ast.ImportFrom, importer: str) -> str:
        if not node.level:
            return node.module or ""
        folder = dirname(importer)
        for _ in range(node.level - 1):
            folder = dirname(folder)
        return ".".join(part for part in (*folder.split("/"), node.module or "") if part)

    def _list_module_names(self, path: str) -> Iterable[str]:
        """Yield module names by the full path, by the path below a source root, and by the enclosing packages."""
        stem = path.removesuffix(MODULE).removesuffix("/__init__")
        yield stem.replace("/", ".")
        for root in _ROOTS:
            if stem.startswith(root):
                yield stem.removeprefix(root).replace("/", ".")
        folder = dirname(stem)
        while folder and f"{folder}/__init__.py" in self._files:
            folder = dirname(folder)
        yield stem.removeprefix(f"{folder}/" if folder else "").replace("/", ".")
