"""Compare versions of Python code by their syntax trees. This module implements `ChangeReader`."""

from __future__ import annotations

import ast
import doctest
from collections import Counter
from collections.abc import Collection, Iterator

from redstart.toolkit.languages.python.syntax import Function, is_python, iter_functions, parse_source

Example = tuple[str, str, str]
_UNREPORTED = (Function, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue, ast.Try)

can_parse = is_python


def has_same_meaning(before: bytes, after: bytes) -> bool:
    old, new = parse_source(before), parse_source(after)
    return old is not None and new is not None and ast.dump(old) == ast.dump(new)


def list_added_names(lines: bytes) -> frozenset[str] | None:
    tree = parse_source(lines)
    if tree is None:
        return None
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(item.asname or item.name).partition(".")[0] for item in node.names}
        else:
            return None
    return frozenset(names)


def list_function_lines(text: bytes) -> frozenset[int]:
    """List the first lines of the statements in functions that an interpreter reports when it runs them."""
    tree = parse_source(text)
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, Function)) if tree else ()
    statements = (item for body in bodies for statement in body for item in ast.walk(statement))
    return frozenset(node.lineno for node in statements if isinstance(node, ast.stmt) and _is_reported(node))


def _is_reported(node: ast.stmt) -> bool:
    """Return whether every interpreter reports the line: some leave out what does nothing but jump."""
    if isinstance(node, _UNREPORTED) or (isinstance(node, ast.AnnAssign) and node.value is None):
        return False
    value = node.value if isinstance(node, ast.Expr) else node.test if isinstance(node, ast.While) else None
    return not isinstance(value, ast.Constant)


def describe_lost_tests(before: bytes, after: bytes, ids: Collection[str]) -> str:
    """Check that every docstring example still exists and that every test function is unchanged."""
    old, new = parse_source(before), parse_source(after)
    if old is None or new is None:
        return ""
    if lost_examples := Counter(_walk_examples(old)) - Counter(_walk_examples(new)):
        return f"the doctest {next(iter(lost_examples))[0].strip()!r} is changed or gone"
    names = {part.partition("[")[0] for id_ in ids for part in id_.split("::")[1:]}
    changed = Counter(_walk_tests(old, names)) - Counter(_walk_tests(new, names))
    return f"the test {next(iter(changed))[0]} is changed or gone" if changed else ""


def _walk_examples(tree: ast.Module) -> Iterator[Example]:
    """Iterate over docstring examples: the source, the expected output, and the options that it sets."""
    parser = doctest.DocTestParser()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | Function):
            continue
        try:
            examples = parser.get_examples(ast.get_docstring(node) or "")
        except ValueError:
            continue
        for item in examples:
            yield item.source, item.exc_msg or item.want, repr(sorted(item.options.items()))


def _walk_tests(tree: ast.Module, names: Collection[str]) -> Iterator[tuple[str, str]]:
    for node in iter_functions(tree):
        if node.name in names and node.name.startswith("test"):
            yield node.name, ast.dump(node)
