"""Read what an assertion expected and what it got, if its message shows both."""

from __future__ import annotations

import re
from typing import NamedTuple

NOTHING_RAISED = "no exception"

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MARK = re.compile(r"""[\\'"()\[\]{} ]""")
"""What may open, close or separate values; other characters are passed over."""
_NOT_RAISED = re.compile(r"DID NOT RAISE (?:<class '([^']+)'>|(.+))")
_UNITTEST_NOT_RAISED = re.compile(r"^(?:AssertionError: )?([\w.]+) not raised\b")
_PATTERN = re.compile(r"^ *(?:Expected regex|Regex): (.*)$", re.MULTILINE)
_INPUT = re.compile(r"^ *(?:Actual message|Input): (.*)$", re.MULTILINE)
_IS_NOT = re.compile(r"^(?:AssertionError: )?(.+) is not (true|false|None)(?: : .*)?$")
_DIFFERENCE_PREFIX = re.compile(r"^(?:AssertionError: )?(?:\w+ differ: )?")


class ComparedValues(NamedTuple):
    actual: str | None = None
    expected: str | None = None


def parse_comparison(message: str) -> ComparedValues:
    """Parse both sides of the failed comparison. Both are None if the message does not show them.

    By convention, the left side is the code's value and the right side is the value that the test expects.
    """
    if "DID NOT RAISE" in message or " not raised" in message:
        return _parse_not_raised(message)
    if "Regex pattern did not match" in message:
        pattern, text = _PATTERN.search(message), _INPUT.search(message)
        return ComparedValues(text.group(1), pattern.group(1)) if pattern and text else ComparedValues()
    lines = message.splitlines()
    for line in lines:
        body = line.removeprefix("AssertionError: ")
        if body.startswith("assert "):
            return _split(body.removeprefix("assert "), ("==", "is"))
    return _parse_unittest(lines[0]) if lines else ComparedValues()


def _parse_not_raised(message: str) -> ComparedValues:
    if match := _NOT_RAISED.search(message):
        return ComparedValues(NOTHING_RAISED, match.group(1) or match.group(2))
    if match := _UNITTEST_NOT_RAISED.match(message):
        return ComparedValues(NOTHING_RAISED, match.group(1))
    return ComparedValues()


def _parse_unittest(line: str) -> ComparedValues:
    if match := _IS_NOT.match(line):
        return ComparedValues(match.group(1), {"true": "True", "false": "False", "None": "None"}[match.group(2)])
    values = _split(_DIFFERENCE_PREFIX.sub("", line, count=1), ("!=",))
    if values.expected is None:
        return values
    note = _find_top_level(values.expected, (":",))
    return ComparedValues(values.actual, values.expected[: note[0][0]] if note else values.expected)


def _split(text: str, operators: tuple[str, ...]) -> ComparedValues:
    """Split at the single operator that is outside all brackets and quotes."""
    if text.startswith("not "):
        return ComparedValues()
    spans = _find_top_level(text, operators)
    if not spans and not (text.startswith("(") and text.endswith(")")):
        # A long value is cut in the middle ("[1, 2...9]"), which may leave a quote or bracket open.
        alternatives = "|".join(re.escape(operator) for operator in operators)
        spans = [match.span() for match in re.finditer(f" (?:{alternatives}) ", text)]
    if len(spans) != 1:
        return ComparedValues()
    start, end = spans[0]
    return ComparedValues(text[:start], text[end:])


def _find_top_level(text: str, operators: tuple[str, ...]) -> list[tuple[int, int]]:
    """Find the spans of ` operator ` in `text`, with their spaces, outside brackets and quotes."""
    spans: list[tuple[int, int]] = []
    open_brackets: list[str] = []
    quote = ""
    position = 0
    while (match := _MARK.search(text, position)) is not None:
        position, char = match.start(), match[0]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _CLOSING:
            open_brackets.append(_CLOSING[char])
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char == " " and not open_brackets:
            spans += [
                (position, position + len(operator) + 2)
                for operator in operators
                if text.startswith(f" {operator} ", position)
            ]
        position += 1
    return spans
