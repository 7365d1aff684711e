"""Tests that lie where no policy protects them: doctests, tests in the code's own files, and files of other kinds."""

from __future__ import annotations

import ast
import doctest
from collections import Counter
from collections.abc import Collection, Iterator

Example = tuple[str, str, str]


def tests_lost(path: str, before: bytes | None, after: bytes | None, ids: Collection[str]) -> str:
    """In a sentence, which of a file's tests a change would alter; empty where it leaves them as they are.

    `ids` are those that the runner collected from this file at the baseline. Of a Python file every example of its
    docstrings must still be there, and every function that is a test as it was; of another file, all of it.
    """
    if not ids or before is None:
        return ""
    if after is None or not path.endswith(".py"):
        return f"tests are collected from {path}: it is not the code's to change"
    old, new = _parsed(before), _parsed(after)
    if old is None or new is None:
        return ""
    if lost := Counter(_examples(old)) - Counter(_examples(new)):
        return f"the doctest {next(iter(lost))[0].strip()!r} is changed or gone"
    names = {part.partition("[")[0] for one in ids for part in one.split("::")[1:]}
    kept = Counter(_functions(new, names))
    changed = Counter(_functions(old, names)) - kept
    return f"the test {next(iter(changed))[0]} is changed or gone" if changed else ""


def _parsed(data: bytes) -> ast.Module | None:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _examples(tree: ast.Module) -> Iterator[Example]:
    """What each docstring shows: the source, what it gives, and the options that it sets."""
    parser = doctest.DocTestParser()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        try:
            shown = parser.get_examples(ast.get_docstring(node) or "")
        except ValueError:
            continue
        for one in shown:
            yield one.source, one.exc_msg or one.want, repr(sorted(one.options.items()))


def _functions(tree: ast.Module, names: Collection[str]) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and node.name in names and node.name.startswith("test"):
            yield node.name, ast.dump(node)
