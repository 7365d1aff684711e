"""Tests that were just written: whether they can be read, and assert anything."""

from __future__ import annotations

import re

from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import language_of_file

_NEXT = re.compile(r"^(?=(?:async )?def test_|@pytest\.|(?:test|it)\()", re.MULTILINE)


def said_in_full(answer: str) -> str:
    """Of an answer that was cut off inside one fenced file of tests: that file with the tests before the last.

    Tests stand side by side, so that those which were said to their end mean what they would have meant. The answer
    itself where that is not how it was cut.
    """
    *_, last = [0, *(found.start() for found in _NEXT.finditer(answer))]
    if answer.count("```") != 1 or not last:
        return answer
    return f"{answer[:last].rstrip()}\n```\n"


def why_no_test(path: str, text: str) -> str:
    """Why this file is no test to start from, in words; empty where it is."""
    return (language_of_file(path) or Language()).why_no_test(path, text)
