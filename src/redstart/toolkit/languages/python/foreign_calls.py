"""Recognize tests that use an installed package in a way that its installed version does not support.

The test's own line must show it: a keyword, a number of arguments or a name that the test itself writes, of a package
that the test itself imports. If the project's code takes part in any way, the failure may be its bug.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.base.tracebacks import Frame, parse_tracebacks, strip_colors
from redstart.toolkit.languages.python import distributions
from redstart.toolkit.languages.registry import is_code, is_test_path
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, create_problem
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.reading.exceptions import RaisedException, is_expected, list_exceptions

KIND = "other_package_version"

_KEYWORD = re.compile(r"^(?P<callable>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_ARGUMENTS = re.compile(
    r"^(?P<callable>[\w.<>]+)\(\) "
    r"(?:takes (?:from |exactly )?\d.* argument|missing \d+ required (?:positional|keyword))"
)
_MODULE_LACKS = re.compile(r"^module '(?P<owner>[\w.]+)' has no attribute '(?P<name>\w+)'")
_CLASS_LACKS = re.compile(r"^type object '(?P<owner>\w+)' has no attribute '(?P<name>\w+)'")
_CANNOT_IMPORT = re.compile(r"^cannot import name '(?P<name>\w+)' from '(?P<owner>[\w.]+)' \((?P<path>[^)]*)\)")
_INSTALLED = re.compile(r"(?:^|/)(?:site-packages|dist-packages)/")
_FILLERS = frozenset(("__init__", "__new__", "__call__", "<locals>"))


class _TestLine(NamedTuple):
    """The line of a test that raised the exception, or called what raised it."""

    nodes: tuple[ast.AST, ...]
    """Everything on it."""
    imported: dict[str, str]
    """The names that only imports bind in the file, with what they stand for: `click.testing.CliRunner`."""


def find_foreign_call(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    """Find the package of which the failing test needs another version. None if the project may be at fault."""
    exceptions = list_exceptions(case)
    tracebacks = parse_tracebacks(strip_colors(case.detail))
    if len(exceptions) != 1 or len(tracebacks) != 1 or is_expected(case):
        return None
    frame = _find_last_test_frame(tracebacks[0].frames, project)
    line = _read_line(frame, project) if frame else None
    if line is None:
        return None
    target = _find_called(exceptions[0], line)
    top = target.partition(".")[0]
    if not top or top in project.modules or top in sys.stdlib_module_names or _is_defined(target, project):
        return None
    package = distributions.DISTRIBUTIONS.get(top, top.replace("_", "-"))
    description = f"the tests need another version of {package}: {exceptions[0].text.splitlines()[0]}"
    remedy = f"install the version of {package} that the tests are written for, or make every failing test a target "
    return create_problem(KIND, description, f"{remedy}with --all-red")


def _find_last_test_frame(frames: tuple[Frame, ...], project: ProjectView) -> Frame | None:
    """Find the innermost frame of the project if all of its frames are tests, and only packages are below it."""
    owned = [number for number, frame in enumerate(frames) if project.get_relative_path(frame.path)]
    if not owned or not all(is_test_path(project.get_relative_path(frames[number].path)) for number in owned):
        return None
    below = frames[owned[-1] + 1 :]
    return frames[owned[-1]] if all(_INSTALLED.search(frame.path) for frame in below) else None


def _read_line(frame: Frame, project: ProjectView) -> _TestLine | None:
    try:
        tree = ast.parse(project.read_text(project.get_relative_path(frame.path)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    nodes = tuple(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.ImportFrom)
        and node.lineno <= frame.number <= (node.end_lineno or node.lineno)
    )
    return _TestLine(nodes, _list_imported_names(tree))


def _list_imported_names(tree: ast.Module) -> dict[str, str]:
    imported: dict[str, str] = {}
    bound: set[str] = set()
    for node in ast.walk(tree):
        for name, target in _list_bindings(node):
            if not target or imported.get(name, target) != target:
                bound.add(name)
            imported[name] = target
    return {name: target for name, target in imported.items() if name not in bound}


def _list_bindings(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that a node binds, with what it imports; empty for anything else."""
    if isinstance(node, ast.Import):
        for item in node.names:
            top = item.name.partition(".")[0]
            yield (item.asname, item.name) if item.asname else (top, top)
    elif isinstance(node, ast.ImportFrom):
        for item in node.names:
            yield item.asname or item.name, "" if node.level else f"{node.module}.{item.name}"
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, ""
    elif isinstance(node, ast.arg):
        yield node.arg, ""
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, ""


def _find_called(exception: RaisedException, line: _TestLine) -> str:
    """Find what of a package the line uses wrongly, as a dotted name; empty if it does not show that."""
    if exception.type == "TypeError":
        return _find_wrong_call(exception.text, line)
    if exception.type == "AttributeError":
        return _find_missing_attribute(exception.text, line)
    if exception.type == "ImportError" and (match := _CANNOT_IMPORT.match(exception.text)):
        names = {
            f"{node.module}.{item.name}"
            for node in line.nodes
            if isinstance(node, ast.ImportFrom) and not node.level
            for item in node.names
        }
        target = f"{match['owner']}.{match['name']}"
        return target if target in names and _INSTALLED.search(match["path"]) else ""
    return ""


def _find_wrong_call(text: str, line: _TestLine) -> str:
    keyword, arguments = _KEYWORD.match(text), _ARGUMENTS.match(text)
    match = keyword or arguments
    if match is None:
        return ""
    parts = [part for part in match["callable"].split(".") if part not in _FILLERS]
    for call in (node for node in line.nodes if isinstance(node, ast.Call)):
        target = _resolve(call.func, line.imported)
        is_named = not parts or parts[-1] == target.rpartition(".")[2]
        if not target or not is_named:
            continue
        has_open_arguments = any(isinstance(item, ast.Starred) for item in call.args) or any(
            item.arg is None for item in call.keywords
        )
        is_written = any(item.arg == keyword["name"] for item in call.keywords) if keyword else not has_open_arguments
        if is_written:
            return target
    return ""


def _find_missing_attribute(text: str, line: _TestLine) -> str:
    module, type_object = _MODULE_LACKS.match(text), _CLASS_LACKS.match(text)
    match = module or type_object
    for node in line.nodes if match else ():
        if match is None or not isinstance(node, ast.Attribute) or node.attr != match["name"]:
            continue
        owner = _resolve(node.value, line.imported)
        if owner and (owner == match["owner"] if module else owner.rpartition(".")[2] == match["owner"]):
            return f"{owner}.{node.attr}"
    return ""


def _resolve(node: ast.expr, imported: dict[str, str]) -> str:
    """Return the full dotted name of an expression that begins with an imported name; empty for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = imported.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join((root, *reversed(parts))) if root else ""


def _is_defined(target: str, project: ProjectView) -> bool:
    """Whether the project's own code defines something of this name, which the test may use instead."""
    pattern = re.compile(rf"^\s*(?:async\s+def|def|class)\s+{re.escape(target.rpartition('.')[2])}\b", re.MULTILINE)
    sources = (path for path in project.paths if is_code(path) and not is_test_path(path))
    return any(pattern.search(project.read_text(path)) for path in sources)
