"""Tests that stand in a source file: a change of them is a change of the tests, and a person's to approve."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from redstart.toolkit.honesty.tripwires.rules import Tripped

Files = Mapping[str, bytes | None]

_IS_TEST = re.compile(r"#\[\s*(?:cfg\s*\([^\]]*\btest\b[^\]]*\)|(?:\w+::)*(?:test|rstest|test_case)\b[^\]]*)\]")
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<fence>\#*)".*?"(?P=fence)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|[{};]""",
    re.DOTALL,
)


def changed_inline_tests(before: Files, after: Files) -> Iterator[Tripped]:
    """The source files in Rust whose own tests the change alters or takes away; new tests beside them are none."""
    for path, old in before.items():
        if not path.endswith(".rs") or old is None:
            continue
        was, now = (Counter(_tests_in((text or b"").decode(errors="replace"))) for text in (old, after.get(path)))
        if was - now:
            yield Tripped(path, 1, "test_changed", "the tests in this file change")


def _tests_in(text: str) -> Iterator[str]:
    """Each module or function that is compiled for tests alone, with its attribute."""
    end = 0
    for start in _IS_TEST.finditer(text):
        if start.start() < end:
            continue
        end = _end_of_item(text, start.end())
        yield text[start.start() : end]


def _end_of_item(text: str, start: int) -> int:
    """Where the item that begins here is over: at its closing brace, or at a semicolon before any brace."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        sign = token.group()
        depth += (sign == "{") - (sign == "}")
        if depth <= 0 and sign in ("}", ";"):
            return token.end()
    return len(text)
