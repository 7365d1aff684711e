"""Code in an answer that names no file."""

from __future__ import annotations

import pytest

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.patching.reading.unnamed import given_back, unnamed

FILES = {
    "a.py": "def first():\n    return 1\n\n\ndef second():\n    return 2\n",
    "b.py": "class Other:\n    pass\n",
    "notes.md": "def first():\n",
}


def fenced(*programs: str) -> str:
    return "Like this:\n\n" + "\n".join(f"```python\n{program}```\n" for program in programs)


def test_it_belongs_to_the_file_that_defines_the_same_names():
    code = "def first():\n    return 11\n"
    assert unnamed(fenced(code), FILES) == (Edit(kind=EditKind.whole, path="a.py", text=code),)
    assert parse(fenced(code), FILES).edits == unnamed(fenced(code), FILES)
    assert parse(fenced(code)).edits == ()


def test_what_is_only_copied_does_not_count():
    copied, code = "def first():\n    return 1\n", "def first():\n    return 11\n"
    assert [edit.text for edit in unnamed(fenced(copied, code), FILES)] == [code]
    assert unnamed(fenced(copied), FILES) == ()


@pytest.mark.parametrize(
    "answer",
    [
        fenced("def first():\n    return 11\n", "def first():\n    return 12\n"),
        fenced("def first():\n    return 11\n", "class Other:\n    x = 1\n"),
        fenced("def first():\n    return 11\n\n\nclass Other:\n    x = 1\n"),
        fenced("def third():\n    return 3\n"),
        fenced("def first(:\n"),
        "```python\ndef first():\n    return 11\n",
        "no code at all",
    ],
    ids=["two versions", "two files", "in two files", "new", "no program", "cut off", "prose"],
)
def test_what_may_mean_several_things_or_none_is_no_edit(answer):
    assert unnamed(answer, FILES) == ()


def test_an_edit_that_names_its_file_goes_first():
    named = "a.py\n```python\ndef first():\n    return 11\n```\n"
    assert [edit.path for edit in parse(named, FILES).edits] == ["a.py"]


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        (fenced(FILES["a.py"]), ("a.py",)),
        (fenced(FILES["b.py"], FILES["a.py"]).replace("\n", "\r\n"), ("a.py", "b.py")),
        (fenced("def first():\n    return 1\n"), ()),
        (fenced(FILES["a.py"], "def third():\n    return 3\n"), ()),
        (fenced(FILES["a.py"]) + "```python\nclass", ()),
        ("no code at all", ()),
    ],
    ids=["one", "two", "a part", "more besides", "cut off", "prose"],
)
def test_files_that_are_given_back_as_they_were_are_known(answer, files):
    assert given_back(answer, {**FILES, "empty.py": ""}) == files
