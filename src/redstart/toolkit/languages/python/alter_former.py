"""Replace the value that the failed assertion expects with the value that the original code gave.

A patch replaces the old value, so the old value can no longer be equal, and an exception that was not expected can no
longer be caught, unless the patch changed the comparison itself.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from redstart.core.report import Case
from redstart.toolkit.languages.python.read_tests import SourceEdit, TestFile

_RAISED = re.compile(r"(?:E +)?(\w+)(?::|$)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SHORTENED = re.compile(r"\.\.\.|\[\d+ chars\]")
"""How pytest and unittest mark a shortened value."""
_PART = re.compile(r"[\w.+-]*")


def former(file: TestFile, statement: ast.stmt, seen: Case) -> Iterator[SourceEdit]:
    sides = _sides(statement)
    if not sides or seen.actual is None or seen.expected is None:
        return
    texts = (seen.actual, seen.expected)
    for index in (1, 0):
        if new := _replaced(file, sides[index], texts[index], texts[1 - index]):
            yield file.replace(sides[index], sides[index], new.encode())
            return


def former_exception(seen: Case) -> str:
    """Build a statement that raises the original code's exception; empty if the exception is not a builtin."""
    match = _RAISED.match(seen.message)
    kind = getattr(builtins, match[1], None) if match else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind is AssertionError:
        return ""
    return f'raise {kind.__name__}("~")'


def _replaced(file: TestFile, side: ast.expr, expected: str, old: str) -> str:
    """Return the side's source with the old value instead of the expected one; empty if the values cannot be read."""
    source = file.source(side).decode(errors="replace")
    (wanted, known), (value, is_literal) = _value(expected), _value(old)
    if known and is_literal:
        if wanted == value:
            return ""
        if isinstance(side, ast.Name):
            # Change only the rows of a table that expect this value.
            return f"({value!r} if {side.id} == {wanted!r} else {side.id})"
        return repr(value) if _value(source) == (wanted, True) else ""
    part, instead = _difference(expected, old)
    return source.replace(part, instead) if part and source.count(part) == 1 else ""


def _difference(expected: str, old: str) -> tuple[str, str]:
    """Return the only number in which two texts differ, and its counterpart in the other text."""
    start = next((at for at, (item, other) in enumerate(zip(expected, old, strict=False)) if item != other), 0)
    while start and _PART.fullmatch(expected[start - 1]):
        start -= 1
    parts = [_PART.match(text, start) for text in (expected, old)]
    part, instead = (match[0] if match else "" for match in parts)
    same = expected[start + len(part) :] == old[start + len(instead) :]
    is_number = _NUMBER.fullmatch(part) and _NUMBER.fullmatch(instead)
    return (part, instead) if same and is_number and part != instead else ("", "")


def _sides(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return [left, right]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="assertEqual"), args=[left, right, *_])):
            return [left, right]
        case _:
            return []


def _value(text: str) -> tuple[object, bool]:
    """Return the literal's value and whether the text is a literal; a shortened text is not."""
    try:
        return (None, False) if _SHORTENED.search(text) else (ast.literal_eval(text.strip()), True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, False
