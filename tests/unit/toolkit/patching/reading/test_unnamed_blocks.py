"""Code in an answer that names no file."""

from __future__ import annotations

import pytest

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.patching.reading.unnamed_blocks import find_unnamed_edit, list_returned_files

FILES = {
    "a.py": "def first():\n    return 1\n\n\ndef second():\n    return 2\n",
    "b.py": "class Other:\n    pass\n",
    "notes.md": "def first():\n",
}


def format_fenced(*programs: str) -> str:
    return "Like this:\n\n" + "\n".join(f"```python\n{program}```\n" for program in programs)


def test_code_belongs_to_the_file_that_defines_the_same_names():
    code = "def first():\n    return 11\n"
    assert find_unnamed_edit(format_fenced(code), FILES) == (Edit(kind=EditKind.whole, path="a.py", text=code),)
    assert parse(format_fenced(code), FILES).edits == find_unnamed_edit(format_fenced(code), FILES)
    assert parse(format_fenced(code)).edits == ()


def test_copied_code_does_not_count():
    copied, code = "def first():\n    return 1\n", "def first():\n    return 11\n"
    assert [edit.text for edit in find_unnamed_edit(format_fenced(copied, code), FILES)] == [code]
    assert find_unnamed_edit(format_fenced(copied), FILES) == ()


@pytest.mark.parametrize(
    "answer",
    [
        format_fenced("def first():\n    return 11\n", "def first():\n    return 12\n"),
        format_fenced("def first():\n    return 11\n", "class Other:\n    x = 1\n"),
        format_fenced("def first():\n    return 11\n\n\nclass Other:\n    x = 1\n"),
        format_fenced("def third():\n    return 3\n"),
        format_fenced("def first(:\n"),
        "```python\ndef first():\n    return 11\n",
        "no code at all",
    ],
    ids=["two versions", "two files", "in two files", "new", "no program", "cut off", "prose"],
)
def test_ambiguous_code_is_not_an_edit(answer):
    assert find_unnamed_edit(answer, FILES) == ()


def test_edit_that_names_its_file_takes_precedence():
    answer = "a.py\n```python\ndef first():\n    return 11\n```\n"
    assert [edit.path for edit in parse(answer, FILES).edits] == ["a.py"]


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        (format_fenced(FILES["a.py"]), ("a.py",)),
        (format_fenced(FILES["b.py"], FILES["a.py"]).replace("\n", "\r\n"), ("a.py", "b.py")),
        (format_fenced("def first():\n    return 1\n"), ()),
        (format_fenced(FILES["a.py"], "def third():\n    return 3\n"), ()),
        (format_fenced(FILES["a.py"]) + "```python\nclass", ()),
        ("no code at all", ()),
    ],
    ids=["one", "two", "a part", "more besides", "cut off", "prose"],
)
def test_files_returned_unchanged_are_recognized(answer, files):
    assert list_returned_files(answer, {**FILES, "empty.py": ""}) == files
