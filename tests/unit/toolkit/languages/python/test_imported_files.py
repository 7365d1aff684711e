"""Resolve an import to a file of the tree."""

from __future__ import annotations

import ast

import pytest

from redstart.toolkit.languages.python.code_reader import PythonReader
from redstart.toolkit.languages.python.imported_files import Modules
from redstart.toolkit.retrieval.sources import Sources

TREE = {
    "src/shop/__init__.py": b"from .sums import priced as price\nfrom shop.cart import Cart\n",
    "src/shop/cart.py": b"class Cart: ...\n",
    "src/shop/sums.py": b"def priced(): ...\n",
    "src/shop/tax.py": b"RATE = 1\n",
}


def build_modules(tree: dict[str, bytes]) -> Modules:
    return PythonReader(Sources(tree, tree.get)).modules


@pytest.mark.parametrize(
    ("statement", "importer", "bound"),
    [
        ("import shop.tax", "tests/test_shop.py", {"shop": "src/shop/tax.py"}),
        ("from shop.tax import RATE as r", "tests/test_shop.py", {"r": "src/shop/tax.py"}),
        ("from shop import price", "tests/test_shop.py", {"price": "src/shop/sums.py"}),
        ("from shop import unknown", "tests/test_shop.py", {"unknown": "src/shop/__init__.py"}),
        ("from . import tax", "src/shop/cart.py", {"tax": "src/shop/tax.py"}),
        ("from ..shop.tax import RATE", "src/shop/cart.py", {"RATE": "src/shop/tax.py"}),
        ("import json, os.path", "tests/test_shop.py", {}),
    ],
)
def test_imports_resolve_to_files(statement: str, importer: str, bound: dict[str, str]) -> None:
    node = ast.parse(statement).body[0]
    assert isinstance(node, ast.Import | ast.ImportFrom)
    assert build_modules(TREE).map_imports(node, importer) == bound


def test_package_without_an_init_file_is_found_under_a_source_root() -> None:
    node = ast.parse("from store.stock import count").body[0]
    assert isinstance(node, ast.ImportFrom)
    project_modules = build_modules({"src/store/stock.py": b"", "lib/other.py": b""})
    assert project_modules.map_imports(node, "tests/test_a.py") == {"count": "src/store/stock.py"}


def test_circular_re_exports_do_not_loop() -> None:
    tree = {"a/__init__.py": b"from b import x\n", "b/__init__.py": b"from a import x\n"}
    node = ast.parse("from a import x").body[0]
    assert isinstance(node, ast.ImportFrom)
    assert set(build_modules(tree).map_imports(node, "t.py")) == {"x"}
