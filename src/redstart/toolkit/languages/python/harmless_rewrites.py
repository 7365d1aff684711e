"""Rewrite Python tests without changing their meaning: new line numbers, new names, values defined elsewhere."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

from redstart.toolkit.languages.python.statement_offsets import SourceEdit, TestFile
from redstart.toolkit.languages.python.syntax import Function

_READS_NAMES = frozenset({"eval", "exec", "locals", "vars", "globals", "dir", "getsource", "currentframe", "_getframe"})


def rewrite_test_file(text: bytes, seed: str) -> bytes:
    """Rewrite a test file but keep the meaning of its tests; return a file that does not parse unchanged."""
    try:
        file = TestFile(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    chance = random.Random(seed)  # noqa: S311 (need not be secret, only different in each run)
    values: list[bytes] = []
    edits = [*_insert_comments(file, chance), *_rename_locals(file, chance), *_move_values(file, values)]
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return b"\n".join((text.rstrip(b"\n"), *values, b""))


def _insert_comments(file: TestFile, chance: random.Random) -> Iterator[SourceEdit]:
    """Insert comments between top-level statements, after the docstring and the imports from `__future__`."""
    for statement in file.tree.body:
        first_line = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
        is_head = isinstance(statement, ast.Expr) or (
            isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        )
        offset = file.get_line_start(first_line)
        if (
            not is_head
            and statement.col_offset == 0
            and b";" not in file.text[offset : file.end(statement)].split(b"\n")[0]
        ):
            yield SourceEdit(offset, offset, b"#\n" * chance.randint(1, 3))


def _move_values(file: TestFile, values: list[bytes]) -> Iterator[SourceEdit]:
    """Move the strings and numbers that a test passes to its calls out of the test's code and into the module."""
    tests = [node for node in ast.walk(file.tree) if isinstance(node, Function) and node.name.startswith("test")]
    for call in (node for test in tests for statement in test.body for node in ast.walk(statement)):
        if not isinstance(call, ast.Call):
            continue
        for argument in call.args:
            if isinstance(argument, ast.Constant) and type(argument.value) in (str, bytes, int, float):
                name = b"_value_%d" % len(values)
                values.append(name + b" = (" + file.get_source(argument) + b")")
                yield file.replace(argument, argument, name)


def _rename_locals(file: TestFile, chance: random.Random) -> Iterator[SourceEdit]:
    for node in ast.walk(file.tree):
        if isinstance(node, Function) and node.name.startswith("test"):
            names = sorted(_find_renamable(node))
            if names:
                name = chance.choice(names)
                new = f"{name}_{chance.randint(2, 99)}".encode()
                for use in ast.walk(node):
                    if isinstance(use, ast.Name) and use.id == name:
                        yield file.replace(use, use, new)


def _find_renamable(test: Function) -> set[str]:
    """Find the locals that only plain statements of the test itself can see."""
    nodes = list(ast.walk(test))
    excluded_types = (ast.Lambda, ast.ClassDef, ast.JoinedStr, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)
    if any(isinstance(node, excluded_types) or (isinstance(node, Function) and node is not test) for node in nodes):
        return set()
    if any(getattr(node, "id", getattr(node, "attr", "")) in _READS_NAMES for node in nodes):
        return set()
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound = {
        node.name for node in nodes if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name
    }
    used_names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return {name for name in stored - bound if f"{name}_" not in used_names}
