"""Definitions of an answer put in the place of their namesakes."""

from __future__ import annotations

import pytest

from redstart.toolkit.patching.python_ast import replaced
from redstart.toolkit.patching.text import Span

FILE = '"""About."""\nfrom __future__ import annotations\n\nimport os\n\n\ndef first():\n    return 1\n\n\nTABLE = {}\n'


def put(snippet: str, file: str = FILE) -> str:
    lines = file.splitlines()
    spans = replaced(lines, snippet.splitlines())
    assert isinstance(spans, list), spans
    for span in sorted(spans, key=lambda one: one.start, reverse=True):
        lines[span.start : span.stop] = span.lines
    return "\n".join(lines) + "\n"


def test_a_definition_alone_takes_the_place_of_its_namesake():
    assert put("def first():\n    return 11\n") == FILE.replace("return 1", "return 11")


def test_imports_that_the_file_lacks_come_along_before_its_first_statement():
    made = put("import os\nimport heapq\n\n\ndef first():\n    return 11\n")
    assert made == FILE.replace("import os", "import heapq\nimport os").replace("return 1", "return 11")
    assert put("import heapq\n\ndef first():\n    return 11\n", "def first():\n    return 1\n") == (
        "import heapq\n\n\ndef first():\n    return 11\n"
    )


def test_a_text_that_stands_for_itself_says_nothing():
    assert put('def first():\n    return 11\n\n"""How it works."""\n') == FILE.replace("return 1", "return 11")


@pytest.mark.parametrize(
    ("snippet", "why"),
    [
        ("TABLE = {1: 2}\n\ndef first():\n    return 11\n", "neither the whole file nor only definitions"),
        ("import heapq\n", "neither the whole file nor only definitions"),
        ("def second():\n    return 2\n", "second is there 0 times"),
        ("def first(:\n", "no program"),
    ],
)
def test_what_is_no_definition_of_the_file_is_refused(snippet, why):
    said = replaced(FILE.splitlines(), snippet.splitlines())
    assert isinstance(said, str)
    assert why in said


def test_a_span_says_where():
    assert replaced(["def f():", "    return 1"], ["def f():", "    return 2"]) == [
        Span(0, 2, ("def f():", "    return 2"))
    ]
