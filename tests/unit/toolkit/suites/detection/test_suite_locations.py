"""Where the suites of a tree are."""

from __future__ import annotations

from redstart.toolkit.languages.python.detect import find_runner
from redstart.toolkit.suites.detection.suite_locations import SuitePlace, list_suites

PLAIN = "def test_a():\n    assert True\n"
CASE = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"


def find_suites(files: dict[str, str]) -> tuple[SuitePlace, ...]:
    return list_suites(sorted(files), lambda path: files[path].encode() if path in files else None)


def test_single_project_is_one_suite() -> None:
    assert find_suites({"pyproject.toml": "", "src/a.py": "", "tests/test_a.py": PLAIN}) == (SuitePlace("", "pytest"),)


def test_tests_without_a_project_file_are_one_suite() -> None:
    assert find_suites({"a/test_a.py": PLAIN, "b/test_b.py": PLAIN}) == (SuitePlace("", "pytest"),)


def test_each_project_of_a_monorepo_is_a_suite() -> None:
    files = {
        "README.md": "",
        "one/pyproject.toml": "",
        "one/tests/test_one.py": PLAIN,
        "libs/two/setup.py": "",
        "libs/two/test_two.py": CASE,
        "three/pyproject.toml": "",
        "three/code.py": "",
    }
    assert find_suites(files) == (SuitePlace("libs/two", "unittest"), SuitePlace("one", "pytest"))


def test_root_that_configures_pytest_is_one_suite() -> None:
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "one/setup.py": "",
        "one/test_a.py": PLAIN,
        "two/setup.py": "",
        "two/test_b.py": PLAIN,
    }
    assert find_suites(files) == (SuitePlace("", "pytest"),)
    assert len(find_suites(files | {"pyproject.toml": "[tool.black]\n"})) == 2


def test_projects_in_test_data_are_not_suites() -> None:
    nested_data = {"tests/data/a/setup.py": "", "tests/data/a/test_x.py": PLAIN, "tests/data/b/test_x.py": PLAIN}
    assert find_suites({"setup.py": "", "tests/test_a.py": PLAIN} | nested_data) == (SuitePlace("", "pytest"),)
    nested = {"one/setup.py": "", "one/tests/data/setup.py": "", "one/tests/data/test_x.py": PLAIN}
    assert find_suites(nested) == (SuitePlace("one", "pytest"),)


def test_project_without_tests_has_no_suite() -> None:
    assert find_suites({"pyproject.toml": "", "a.py": ""}) == ()


def test_configuration_in_a_parent_directory_counts() -> None:
    files = {"conftest.py": "", "one/test_a.py": CASE, "two/conftest.py": ""}

    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    assert find_runner("one", files, read) == "pytest"
    del files["conftest.py"]
    assert find_runner("one", files, read) == "unittest"
    assert find_runner("two", files, read) is None
