"""The names that a file defines, and where."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.toolkit.looking.files import Text

MOST = 400
_DEFINES = re.compile(
    r"^(?P<margin>[ \t]{0,12})(?:(?:export|default|public|private|static|async|pub|abstract|final)[ \t]+){0,4}"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|impl|type|module)[ \t]+(?P<name>[A-Za-z_][\w.]*)"
)


class Symbol(NamedTuple):
    name: str
    """With those around it: `Cart.total`."""
    start: int
    end: int
    head: str
    """Its first line."""


def symbols(text: Text) -> list[Symbol]:
    """What the file defines, in order: exactly for Python that parses, by its lines for anything else."""
    tree = _parsed(text) if text.path.endswith((".py", ".pyi")) else None
    found = _of_tree(tree.body, text.lines) if tree else _of_lines(text.lines)
    return sorted(found, key=lambda one: (one.start, one.name))[:MOST]


def _parsed(text: Text) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the project's own invalid escapes are none of ours
        try:
            return ast.parse("\n".join(text.lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _of_tree(body: Sequence[ast.stmt], lines: Sequence[str], around: str = "") -> Iterator[Symbol]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            name = f"{around}{node.name}"
            yield Symbol(name, start, node.end_lineno or node.lineno, lines[node.lineno - 1].strip())
            if isinstance(node, ast.ClassDef):
                yield from _of_tree(node.body, lines, f"{name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    end = node.end_lineno or node.lineno
                    yield Symbol(f"{around}{target.id}", node.lineno, end, lines[node.lineno - 1].strip())
        elif isinstance(node, ast.If | ast.Try):
            yield from _of_tree([*node.body, *node.orelse], lines, around)


def _of_lines(lines: Sequence[str]) -> list[Symbol]:
    """Each goes on until the next that is no further right."""
    heads = [(number, head) for number, line in enumerate(lines, 1) if (head := _DEFINES.match(line[:500]))]
    found: list[Symbol] = []
    for place, (number, head) in enumerate(heads):
        after = (other for other, one in heads[place + 1 :] if len(one["margin"]) <= len(head["margin"]))
        found.append(Symbol(head["name"], number, next(after, len(lines) + 1) - 1, lines[number - 1].strip()))
    return found
