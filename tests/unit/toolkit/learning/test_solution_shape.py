from __future__ import annotations

from redstart.core.pattern import FILES
from redstart.toolkit.learning.solution_shape import ROLE, TreeFiles, build_shape

NAMES = {
    "csvsort/rows.py": ["sort_rows", "_key", "Row"],
    "csvsort/__main__.py": [],
    "csvsort/__init__.py": ["main"],
    "tests/test_rows.py": ["ROWS", "test_sorts", "test_keeps_ties"],
    "tests/conftest.py": ["rows"],
    "src/long.js": [f"name{number}" for number in range(9)],
}
KNOWN = TreeFiles(lambda path: path.startswith("tests/"), lambda path: NAMES.get(path, []))


def test_files_have_roles_and_are_sorted_by_code_tests_and_the_rest():
    program_shape = build_shape(
        [*NAMES, "pyproject.toml", "README.md", ".gitignore", "old.py"], KNOWN, removed_paths=["old.py"]
    )
    assert [(part.path, part.role) for part in program_shape.parts] == [
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
    assert program_shape.left_out == 0


def test_large_program_is_listed_in_part_and_long_names_are_truncated():
    tree_files = TreeFiles(lambda path: False, lambda path: ["n" * 500])
    program_shape = build_shape([f"part_{number:03}.py" for number in range(50)], tree_files)
    assert (len(program_shape.parts), program_shape.left_out) == (FILES, 30)
    assert all(len(part.role.encode()) <= ROLE for part in program_shape.parts)
