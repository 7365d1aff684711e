"""Reads newly written tests: drops a test that was cut off and rejects files that assert nothing."""

from __future__ import annotations

import re

from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import language_of_file

_NEXT = re.compile(r"^(?=(?:async )?def test_|@pytest\.|(?:test|it)\()", re.MULTILINE)


def said_in_full(answer: str) -> str:
    """Drop the last test of an answer that was cut off inside its one fenced file of tests.

    Tests are independent, so the complete ones keep their meaning. Return the answer unchanged if it was not cut off
    in this way.
    """
    *_, last = [0, *(found.start() for found in _NEXT.finditer(answer))]
    if answer.count("```") != 1 or not last:
        return answer
    return f"{answer[:last].rstrip()}\n```\n"


def why_no_test(path: str, text: str) -> str:
    """Explain why this file cannot serve as a test to start from. Empty if it can."""
    return (language_of_file(path) or Language()).why_no_test(path, text)
