"""From an import in Python to the file that it means."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Set
from posixpath import dirname

MODULE = ".py"
_FORWARDS = 3
"""How many packages may hand a name on before we stop following it."""
_ROOTS = ("src/", "lib/", "python/")


class Modules:
    """The modules of a tree, by dotted name."""

    def __init__(self, files: Set[str], tree: Callable[[str], ast.Module | None]) -> None:
        self._files, self._tree = files, tree
        self._paths: dict[str, str] = {}
        for path in sorted((path for path in files if path.endswith(MODULE)), key=lambda file: (len(file), file)):
            for name in self._names(path):
                self._paths.setdefault(name, path)

    def file_of(self, module: str) -> str:
        """Empty where the tree has no such module."""
        return self._paths.get(module, "")

    def imported(self, node: ast.Import | ast.ImportFrom, importer: str) -> dict[str, str]:
        """The names that an import binds, each with the file it comes from; those from outside the tree left out."""
        bound: dict[str, str] = {}
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = self.file_of(alias.name)
        else:
            module = self._absolute(node, importer)
            for alias in node.names:
                bound[alias.asname or alias.name] = self._origin(module, alias.name, _FORWARDS)
        return {name: path for name, path in bound.items() if path}

    def _origin(self, module: str, name: str, forwards: int) -> str:
        submodule = self.file_of(f"{module}.{name}")
        package = self.file_of(module)
        if submodule or not package or not package.endswith("__init__.py") or forwards == 0:
            return submodule or package
        tree = self._tree(package)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._origin(self._absolute(node, package), alias.name, forwards - 1) or package
        return package

    def _absolute(self, node: ast.ImportFrom, importer: str) -> str:
        if not node.level:
            return node.module or ""
        folder = dirname(importer)
        for _ in range(node.level - 1):
            folder = dirname(folder)
        return ".".join(part for part in (*folder.split("/"), node.module or "") if part)

    def _names(self, path: str) -> Iterable[str]:
        """By the whole path, by the path under a source root, and by the packages that it lies in."""
        stem = path.removesuffix(MODULE).removesuffix("/__init__")
        yield stem.replace("/", ".")
        for root in _ROOTS:
            if stem.startswith(root):
                yield stem.removeprefix(root).replace("/", ".")
        folder = dirname(stem)
        while folder and f"{folder}/__init__.py" in self._files:
            folder = dirname(folder)
        yield stem.removeprefix(f"{folder}/" if folder else "").replace("/", ".")
