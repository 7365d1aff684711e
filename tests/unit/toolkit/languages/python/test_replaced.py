"""Definitions in an answer replace their namesakes in the file."""

from __future__ import annotations

import pytest

from redstart.toolkit.languages.python.edited_code import replaced
from redstart.toolkit.patching.hunks import LineReplacement

FILE = '"""About."""\nfrom __future__ import annotations\n\nimport os\n\n\ndef first():\n    return 1\n\n\nTABLE = {}\n'


def put(snippet: str, file: str = FILE) -> str:
    lines = file.splitlines()
    spans = replaced(lines, snippet.splitlines())
    assert isinstance(spans, list), spans
    for span in sorted(spans, key=lambda item: item.start, reverse=True):
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
        LineReplacement(0, 2, ("def f():", "    return 2"))
    ]


TWO = (
    "import os\n\n\n"
    "def first(one):\n    both = one, one\n    print(both)\n    return both\n\n\n"
    "class Second:\n    def only(self):\n        made = first(1)\n        return made\n\n\n"
    "def third():\n    return 3\n"
)
CHANGED = TWO.replace("one, one", "one, 2")


def refused(snippet: str, file: str = TWO) -> str:
    said = replaced(file.splitlines(), snippet.splitlines())
    assert isinstance(said, str), said
    return said


def test_a_definition_that_was_cut_off_is_no_definition():
    """An answer that ends inside a definition still parses if it ends after a complete statement."""
    for end in ("        made = first(1)\n", "        made = first\n"):
        cut = CHANGED.partition(end[:20])[0] + end
        assert refused(cut) == "it ends in the middle of Second: the last lines of that are not in it"
    assert "middle of first" in refused("def first(one):\n    both = one, 2\n    print(both)\n")


def test_the_file_up_to_one_of_its_definitions_is_not_a_choice_of_them():
    whole_ones = CHANGED.partition("def third")[0]
    assert refused(whole_ones) == "it is the file up to Second, and what follows in the file is not in it"
    assert put(whole_ones.partition("class")[0], TWO) == CHANGED
    assert put(whole_ones.removeprefix("import os\n"), TWO) == CHANGED


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("    print(one)\n    return one\n", "    return one\n    print(one)\n"),
        ("    print(one)\n    return one + 1\n", "    print(one)\n    return one\n"),
        ("    made = one\n    return made\n", "    return one\n"),
    ],
)
def test_an_end_that_is_otherwise_is_not_one_that_is_missing(body, new):
    file = f"def first(one):\n{body}\n\ndef second():\n    return 2\n"
    assert put(f"def first(one):\n{new}", file) == file.replace(body, new)
