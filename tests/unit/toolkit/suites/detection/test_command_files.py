"""The files that a test command starts from, and the language of its tests."""

from __future__ import annotations

import pytest

from redstart.core.change import Snapshot
from redstart.core.suite import Suite
from redstart.toolkit.suites.detection.command_files import CommandFiles
from redstart.toolkit.suites.detection.target_language import find_foreign_language

TREE = Snapshot(tree="t", base="b", pack="p")
PYTHON_TEST = "import unittest\n\nclass Views(unittest.TestCase):\n    def test_plain(self): ...\n"
SCRIPT_TEST = 'describe("cart", () => { it("adds up", () => {}); });\n'


class Files(dict[str, str]):
    """A tree of files with the methods that the search for a command's files uses."""

    def list_files(self, tree: Snapshot) -> list[str]:
        del tree
        return list(self)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        del tree
        return self[path].encode() if path in self else None


def create_command_files(command: str, files: dict[str, str], folder: str = "") -> CommandFiles:
    tree = Files(files)
    return CommandFiles(command.split(), folder, list(tree), lambda path: tree.read(TREE, path))


@pytest.mark.parametrize(
    ("command", "files", "expected_paths"),
    [
        ("perl t/suite.pl", {"t/suite.pl": "", "lib/Slug.pm": ""}, ("t/suite.pl",)),
        ("./checks/all.sh --fast", {"checks/all.sh": "", "shop.c": ""}, ("checks/all.sh",)),
        (
            "sh go.sh",
            {"go.sh": "./run_tests.sh\n./shop.sh\n", "run_tests.sh": "", "shop.sh": ""},
            ("go.sh", "run_tests.sh"),
        ),
        ("make -f rules/all check", {"rules/all": "", "a.c": ""}, ("rules/all",)),
        (
            "make check",
            {"Makefile": "check:\n\t./ci/check.sh\n\tcc shop.c\n", "ci/check.sh": "", "shop.c": ""},
            ("ci/check.sh",),
        ),
        ("python -m tools.runner", {"tools/runner.py": "", "tools/__init__.py": ""}, ("tools/runner.py",)),
        ("runner --config=conf/all.xml", {"conf/all.xml": ""}, ("conf/all.xml",)),
        ("pytest --doctest-modules src/shop.py", {"src/shop.py": ""}, ()),
    ],
)
def test_files_named_by_the_command_are_found(command, files, expected_paths):
    assert create_command_files(command, files).named_files == expected_paths


def test_shell_command_line_is_read():
    tree = {"ci/all.sh": "", "shop.sh": ""}
    command_files = CommandFiles(
        ("sh", "-c", "cd . && ci/all.sh; true"), "", list(tree), lambda path: tree[path].encode()
    )
    assert command_files.named_files == ("ci/all.sh",)


def test_file_names_are_relative_to_the_suite_directory():
    assert create_command_files("sh run.sh", {"app/run.sh": "", "run.sh": ""}, folder="app").named_files == (
        "app/run.sh",
    )


@pytest.mark.parametrize(
    ("command", "glob"),
    [("make check", "gnumakefile"), ("just test", "justfile"), ("rake", "Rakefile"), ("go test ./...", "go.mod")],
)
def test_build_files_are_protected_before_they_exist(command, glob):
    command_files = create_command_files(command, {"shop.c": ""})
    assert {glob, f"*/{glob}"} <= set(command_files.globs)
    assert create_command_files("sh run.sh", {"shop.c": ""}).globs == ()


def find_language(command: str, files: dict[str, str], *ids: str) -> str:
    suite = Suite(runner="pytest", command=tuple(command.split()), junit="out.xml")
    return find_foreign_language(suite, Files(files), TREE, ids)  # pyright: ignore[reportArgumentType]


PYTHON = {"tests/test_views.py": PYTHON_TEST, "Makefile": "check:\n\t./all\n"}


@pytest.mark.parametrize(
    ("command", "files", "ids"),
    [
        ("make check", PYTHON, ("tests.test_views.Views::test_plain",)),
        ("make check", PYTHON, ("Views::test_plain", "Views::test_plain #2")),
        ("make check", PYTHON, ("views::test_plain[1]", "tests/test_views.py::other")),
        ("sh go.sh", {"cart.test.js": SCRIPT_TEST, "go.sh": ""}, ("cart::cart adds up", "cart.test.js::x")),
        ("python own.py", {"own.py": "", "tests/test_views.py": PYTHON_TEST}, ("shop::the total",)),
        ("make check", {**PYTHON, "Makefile": "check:\n\tpython own.py\n"}, ("shop::the total",)),
    ],
)
def test_python_and_script_suites_can_be_altered(command, files, ids):
    assert find_language(command, files, *ids) == ""


@pytest.mark.parametrize(
    ("command", "files", "expected"),
    [
        ("perl t/suite.pl", {"t/suite.pl": ""}, "Perl"),
        ("make check", {"Makefile": "check:\n\t-perl t/suite.pl\n", "t/suite.pl": ""}, "Perl"),
        ("go test ./...", {"shop_test.go": "", "tests/test_views.py": PYTHON_TEST}, "Go"),
        ("sh run.sh", {"run.sh": "", "src/test/java/Total.java": ""}, "Java"),
        ("python own.py", {"own.py": "", "shop_test.go": ""}, "Go"),
        ("make check", PYTHON, "another language"),
    ],
)
def test_foreign_language_suites_cannot_be_altered(command, files, expected):
    assert find_language(command, files, "shop::the total") == expected


def test_single_untraceable_target_marks_the_suite_as_foreign():
    ids = ("Views::test_plain", "shop::the total")
    assert find_language("make check", PYTHON, *ids) == "another language"


def test_suite_without_its_own_report_can_be_altered():
    suite = Suite(runner="pytest", command=("make", "check"))
    assert find_foreign_language(suite, Files(), TREE, ["a::b"]) == ""  # pyright: ignore[reportArgumentType]
