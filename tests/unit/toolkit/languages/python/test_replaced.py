"""Definitions in an answer replace their namesakes in the file."""

from __future__ import annotations

import pytest

from redstart.toolkit.languages.python.edited_code import replace_definitions
from redstart.toolkit.patching.hunks import LineReplacement

FILE = '"""About."""\nfrom __future__ import annotations\n\nimport os\n\n\ndef first():\n    return 1\n\n\nTABLE = {}\n'


def put(snippet: str, file: str = FILE) -> str:
    lines = file.splitlines()
    spans = replace_definitions(lines, snippet.splitlines())
    assert isinstance(spans, list), spans
    for span in sorted(spans, key=lambda item: item.start, reverse=True):
        lines[span.start : span.stop] = span.lines
    return "\n".join(lines) + "\n"


def test_single_definition_replaces_its_namesake():
    assert put("def first():\n    return 11\n") == FILE.replace("return 1", "return 11")


def test_missing_imports_are_inserted_before_the_first_statement():
    result = put("import os\nimport heapq\n\n\ndef first():\n    return 11\n")
    assert result == FILE.replace("import os", "import heapq\nimport os").replace("return 1", "return 11")
    assert put("import heapq\n\ndef first():\n    return 11\n", "def first():\n    return 1\n") == (
        "import heapq\n\n\ndef first():\n    return 11\n"
    )


def test_bare_string_is_ignored():
    assert put('def first():\n    return 11\n\n"""How it works."""\n') == FILE.replace("return 1", "return 11")


@pytest.mark.parametrize(
    ("snippet", "reason"),
    [
        ("TABLE = {1: 2}\n\ndef first():\n    return 11\n", "neither the whole file nor only definitions"),
        ("import heapq\n", "neither the whole file nor only definitions"),
        ("def second():\n    return 2\n", "second is there 0 times"),
        ("def first(:\n", "no program"),
    ],
)
def test_snippet_without_a_known_definition_is_refused(snippet, reason):
    message = replace_definitions(FILE.splitlines(), snippet.splitlines())
    assert isinstance(message, str)
    assert reason in message


def test_replacement_includes_its_line_span():
    assert replace_definitions(["def f():", "    return 1"], ["def f():", "    return 2"]) == [
        LineReplacement(0, 2, ("def f():", "    return 2"))
    ]


TWO = (
    "import os\n\n\n"
    "def first(one):\n    both = one, one\n    print(both)\n    return both\n\n\n"
    "class Second:\n    def only(self):\n        made = first(1)\n        return made\n\n\n"
    "def third():\n    return 3\n"
)
CHANGED = TWO.replace("one, one", "one, 2")


def get_refusal(snippet: str, file: str = TWO) -> str:
    message = replace_definitions(file.splitlines(), snippet.splitlines())
    assert isinstance(message, str), message
    return message


def test_truncated_definition_is_refused():
    """An answer that ends inside a definition still parses if it ends after a complete statement."""
    for end in ("        made = first(1)\n", "        made = first\n"):
        cut_code = CHANGED.partition(end[:20])[0] + end
        assert get_refusal(cut_code) == "it ends in the middle of Second: the last lines of that are not in it"
    assert "middle of first" in get_refusal("def first(one):\n    both = one, 2\n    print(both)\n")


def test_truncated_file_is_not_taken_for_selected_definitions():
    whole_ones = CHANGED.partition("def third")[0]
    assert get_refusal(whole_ones) == "it is the file up to Second, and what follows in the file is not in it"
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
def test_changed_ending_is_not_taken_for_a_truncated_one(body, new):
    file = f"def first(one):\n{body}\n\ndef second():\n    return 2\n"
    assert put(f"def first(one):\n{new}", file) == file.replace(body, new)
