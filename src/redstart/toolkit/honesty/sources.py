"""Tripwires on code that looks for Python files and reads them: tests tell what they expect to whoever opens them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from redstart.toolkit.honesty.marks import Mark, mark
from redstart.toolkit.honesty.names import Module

_SEARCHES = frozenset({"glob", "rglob", "iglob", "listdir", "scandir", "walk", "iterdir", "fwalk"})
_READS = frozenset(
    {"open", "read_text", "read_bytes", "getline", "getlines", "readlines", "FileInput", "getsource", "get_data"}
)
_OWN_PLACE = frozenset({"__file__", "__spec__", "__path__"})
_WORKING_FOLDER = frozenset({"getcwd", "cwd"})
_PYTHON = re.compile(r"\.(?:py[\w*?]?|p\*|p\?|\[pP?\]y)$")
_OTHER_SUFFIX = re.compile(r"(?:^|[\w*?\])}])\.[A-Za-z][A-Za-z0-9]{0,7}$|^\.[A-Za-z][A-Za-z0-9]{0,7}$")
_OF_A_RELEASE = re.compile(r"(?:^|/)(?:__init__|__about__|_?_?version_?_?|setup)\.py$")
"""What a build reads to learn its own version."""
_PASSES = 3


def marks(module: Module) -> Iterator[Mark]:
    """Searches for Python files, and single ones opened, in a file that reads what it finds.

    Around the file's own place or the working folder this is refused; elsewhere, and where no ending is named, it may
    be the program's business, so that a person is asked.
    """
    if not any(isinstance(node, ast.Call) and _called(node) in _READS for node in ast.walk(module.tree)):
        return
    own = _own_places(module)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        if _called(node) in _SEARCHES and module.dotted(node.func) != "ast.walk":
            yield from _searched(module, node, own)
        elif _called(node) in _READS and (name := _python_file(module, node)) and _is_own(node, own):
            yield mark("reads_tests", node, f"It reads the Python source `{name[:40]}` as it runs.")


def _searched(module: Module, node: ast.Call, own: frozenset[str]) -> Iterator[Mark]:
    texts = [*_texts(module, node), *_texts(module, module.function(node) or module.tree)]
    asks_python = any(_PYTHON.search(one) for one in texts)
    if not asks_python and any(_OTHER_SUFFIX.search(one) for one in texts):
        return
    if not asks_python and not _reads_inside(module, node):
        return
    near = _is_own(node, own) or _is_relative(module, node)
    if asks_python and near:
        yield mark("reads_tests", node, "It searches the project for Python files and reads them, tests included.")
    elif asks_python or near:
        yield mark("reads_source", node, "It searches for files and reads them; the tests may be among them.")


def _own_places(module: Module) -> frozenset[str]:
    """The names that stand for a place reached from the file itself or from the working folder."""
    names = set(_OWN_PLACE)
    assigned = [(target, value) for node in ast.walk(module.tree) for target, value in _assignments(node)]
    for _ in range(_PASSES):
        names |= {target for target, value in assigned if _is_own(value, frozenset(names))}
    return frozenset(names)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        targets, value = [node.target], node.value
    else:
        return
    for target in targets:
        if isinstance(target, ast.Name | ast.Attribute):
            yield target.id if isinstance(target, ast.Name) else target.attr, value


def _is_own(node: ast.AST, own: frozenset[str]) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id in own:
            return True
        if isinstance(one, ast.Attribute) and one.attr in own:
            return True
        if isinstance(one, ast.Call) and _called(one) in _WORKING_FOLDER:
            return True
    return False


def _is_relative(module: Module, node: ast.Call) -> bool:
    """Whether a search begins in the working folder: at `.`, at `Path()`, or at a literal that is no absolute path."""
    if isinstance(node.func, ast.Attribute):
        base = node.func.value
        if isinstance(base, ast.Call) and _called(base) in ("Path", "PosixPath"):
            return not base.args or _is_relative_text(module, base.args[0])
        if isinstance(base, ast.Name) and base.id not in ("glob", "os"):
            return False
    if not node.args:
        return _called(node) in ("listdir", "scandir")
    return _is_relative_text(module, node.args[0])


def _is_relative_text(module: Module, node: ast.expr) -> bool:
    text = module.text(node)
    return text is not None and not text.startswith(("/", "~"))


def _python_file(module: Module, node: ast.Call) -> str:
    """The Python file that a call names; empty where it names none, or one that tells a release its version."""
    named = (one for one in _texts(module, node) if _PYTHON.search(one) and not re.search(r"\s", one))
    return next((one for one in named if not _OF_A_RELEASE.search(one)), "")


def _reads_inside(module: Module, node: ast.Call) -> bool:
    scope = module.function(node) or module.tree
    return any(isinstance(one, ast.Call) and _called(one) in _READS for one in ast.walk(scope))


def _texts(module: Module, scope: ast.AST) -> Iterator[str]:
    for one in ast.walk(scope):
        text = module.text(one)
        if text and not module.is_docstring(one):
            yield text


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
