"""Read newly written tests: drop a test that was cut off, and reject files that assert nothing."""

from __future__ import annotations

import re

from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import find_file_language

_NEXT = re.compile(r"^(?=(?:async )?def test_|@pytest\.|(?:test|it)\()", re.MULTILINE)


def drop_incomplete_test(answer: str) -> str:
    """Drop the last test of an answer that was cut off inside its one fenced file of tests.

    Tests are independent, so the complete ones keep their meaning. Return the answer unchanged if it was not cut off
    in this way.
    """
    *_, last_start = [0, *(match.start() for match in _NEXT.finditer(answer))]
    if answer.count("```") != 1 or not last_start:
        return answer
    return f"{answer[:last_start].rstrip()}\n```\n"


def explain_unusable_test(path: str, text: str) -> str:
    """Explain why this file cannot serve as a test to start from. Empty if it can."""
    return (find_file_language(path) or Language()).explain_invalid_test(path, text)
