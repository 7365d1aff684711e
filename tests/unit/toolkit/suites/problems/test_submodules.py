"""A submodule that is not checked out is recognized by the files that failing tests miss."""

from __future__ import annotations

import pytest

from redstart.testing.states import make_case
from redstart.toolkit.suites.problems.submodules import find_missing_submodule, list_empty_submodules

MODULES = (
    b'[submodule "data"]\n\tpath = tests/data\n\turl = https://example.org/data.git\n[submodule "x"]\n\tpath = x\n'
)


@pytest.mark.parametrize(
    ("paths", "copied", "empty"),
    [
        (("a.py",), (), ("tests/data", "x")),
        (("a.py",), ("tests/data",), ("x",)),
        (("a.py", "x/b.py"), ("tests/data/c.toml",), ()),
        (("a.py", "tests/database.py"), (), ("tests/data", "x")),
    ],
)
def test_submodules_without_files_are_listed(paths, copied, empty):
    assert list_empty_submodules(paths, {".gitmodules": MODULES}.get, copied) == empty


@pytest.mark.parametrize("text", [None, b"no section", b"[submodule]\nurl = x\n"])
def test_missing_or_broken_list_names_no_submodule(text):
    assert list_empty_submodules(("a.py",), lambda _: text, ()) == ()


@pytest.mark.parametrize(
    ("message", "folder", "found"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: '/repo/tests/data/a.toml'", "", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'tests/data'", "", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../tests/data/a'", "sub", True),
        ("ModuleNotFoundError: No module named 'data.cases'", "", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/repo/tests/database/a.toml'", "", False),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/elsewhere/tests/data/a.toml'", "", False),
        ("ValueError: tests/data/a.toml", "", False),
        ("AssertionError: assert '/repo/tests/data/a' == ''", "", False),
    ],
)
def test_only_a_file_or_module_of_the_submodule_counts(message, folder, found):
    problem = find_missing_submodule(make_case(message=message), ("tests/data",), "/repo", folder)
    assert (problem is not None) is found
    if problem is not None:
        assert "tests/data is not checked out" in problem.what
        assert "git submodule update --init" in problem.remedy
