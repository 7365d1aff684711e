from __future__ import annotations

from redstart.core.pattern import FILES
from redstart.toolkit.learning.shape import ROLE, TreeFiles, shape

NAMES = {
    "csvsort/rows.py": ["sort_rows", "_key", "Row"],
    "csvsort/__main__.py": [],
    "csvsort/__init__.py": ["main"],
    "tests/test_rows.py": ["ROWS", "test_sorts", "test_keeps_ties"],
    "tests/conftest.py": ["rows"],
    "src/long.js": [f"name{number}" for number in range(9)],
}
KNOWN = TreeFiles(lambda path: path.startswith("tests/"), lambda path: NAMES.get(path, []))


def test_each_file_has_its_role_code_first_then_tests_then_the_rest():
    found = shape([*NAMES, "pyproject.toml", "README.md", ".gitignore", "old.py"], KNOWN, gone=["old.py"])
    assert [(part.path, part.role) for part in found.parts] == [
        ("csvsort/__init__.py", "package: main"),
        ("csvsort/__main__.py", "entry point of the package"),
        ("csvsort/rows.py", "module: sort_rows, Row"),
        ("src/long.js", "module: name0, name1, name2, name3, name4, name5 …"),
        ("tests/conftest.py", "fixtures of the tests"),
        ("tests/test_rows.py", "tests: 2 functions"),
        (".gitignore", "other file"),
        ("README.md", "documentation"),
        ("pyproject.toml", "project file"),
        ("old.py", "taken away"),
    ]
    assert found.left_out == 0


def test_a_large_program_is_told_in_part_and_long_names_are_cut():
    known = TreeFiles(lambda path: False, lambda path: ["n" * 500])
    found = shape([f"part_{number:03}.py" for number in range(50)], known)
    assert (len(found.parts), found.left_out) == (FILES, 30)
    assert all(len(part.role.encode()) <= ROLE for part in found.parts)
