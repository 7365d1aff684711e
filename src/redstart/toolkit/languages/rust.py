"""Rust beyond its file name conventions: tests in source files."""

from __future__ import annotations

import re
from collections.abc import Iterator

_IS_TEST = re.compile(r"#\[\s*(?:cfg\s*\([^\]]*\btest\b[^\]]*\)|(?:\w+::)*(?:test|rstest|test_case)\b[^\]]*)\]")
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<fence>\#*)".*?"(?P=fence)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|[{};]""",
    re.DOTALL,
)


def find_tests(text: str) -> Iterator[str]:
    """Yield each module or function that is compiled only for tests, with its attribute."""
    end = 0
    for start in _IS_TEST.finditer(text):
        if start.start() < end:
            continue
        end = _find_item_end(text, start.end())
        yield text[start.start() : end]


def _find_item_end(text: str, start: int) -> int:
    """Find the end of the item that begins here: its closing brace, or a semicolon before any brace."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        symbol = token.group()
        depth += (symbol == "{") - (symbol == "}")
        if depth <= 0 and symbol in ("}", ";"):
            return token.end()
    return len(text)
