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
from redstart.toolkit.languages.python.statement_offsets import SourceEdit, TestFile

_EXCEPTION_LINE = re.compile(r"(?:E +)?(\w+)(?::|$)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SHORTENED = re.compile(r"\.\.\.|\[\d+ chars\]")
"""How pytest and unittest mark a shortened value."""
_PART = re.compile(r"[\w.+-]*")


def restore_former_value(file: TestFile, statement: ast.stmt, failure: Case) -> Iterator[SourceEdit]:
    operands = _find_operands(statement)
    if not operands or failure.actual is None or failure.expected is None:
        return
    texts = (failure.actual, failure.expected)
    for index in (1, 0):
        if new := _replace_expected(file, operands[index], texts[index], texts[1 - index]):
            yield file.replace(operands[index], operands[index], new.encode())
            return


def build_former_exception(failure: Case) -> str:
    """Build a statement that raises the original code's exception; empty if the exception is not a builtin."""
    match = _EXCEPTION_LINE.match(failure.message)
    kind = getattr(builtins, match[1], None) if match else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind is AssertionError:
        return ""
    return f'raise {kind.__name__}("~")'


def _replace_expected(file: TestFile, operand: ast.expr, expected: str, old: str) -> str:
    """Return the side's source with the old value instead of the expected one; empty if the values cannot be read."""
    source = file.get_source(operand).decode(errors="replace")
    (expected_value, is_known), (value, is_literal) = _parse_literal(expected), _parse_literal(old)
    if is_known and is_literal:
        if expected_value == value:
            return ""
        if isinstance(operand, ast.Name):
            # Change only the rows of a table that expect this value.
            return f"({value!r} if {operand.id} == {expected_value!r} else {operand.id})"
        return repr(value) if _parse_literal(source) == (expected_value, True) else ""
    part, old_part = _find_number_difference(expected, old)
    return source.replace(part, old_part) if part and source.count(part) == 1 else ""


def _find_number_difference(expected: str, old: str) -> tuple[str, str]:
    """Return the only number in which two texts differ, and its counterpart in the other text."""
    start = next(
        (index for index, (item, old_char) in enumerate(zip(expected, old, strict=False)) if item != old_char), 0
    )
    while start and _PART.fullmatch(expected[start - 1]):
        start -= 1
    parts = [_PART.match(text, start) for text in (expected, old)]
    part, old_part = (match[0] if match else "" for match in parts)
    has_same_end = expected[start + len(part) :] == old[start + len(old_part) :]
    is_number = _NUMBER.fullmatch(part) and _NUMBER.fullmatch(old_part)
    return (part, old_part) if has_same_end and is_number and part != old_part else ("", "")


def _find_operands(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return [left, right]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="assertEqual"), args=[left, right, *_])):
            return [left, right]
        case _:
            return []


def _parse_literal(text: str) -> tuple[object, bool]:
    """Return the literal's value and whether the text is a literal; a shortened text is not."""
    try:
        return (None, False) if _SHORTENED.search(text) else (ast.literal_eval(text.strip()), True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, False
