"""Where the suites of a tree are."""

from __future__ import annotations

from redstart.toolkit.languages.python.detect import runner_in
from redstart.toolkit.suites.detection.places import SuitePlace, suites_in

PLAIN = "def test_a():\n    assert True\n"
CASE = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"


def found(files: dict[str, str]) -> tuple[SuitePlace, ...]:
    return suites_in(sorted(files), lambda path: files[path].encode() if path in files else None)


def test_one_project_is_one_suite() -> None:
    assert found({"pyproject.toml": "", "src/a.py": "", "tests/test_a.py": PLAIN}) == (SuitePlace("", "pytest"),)


def test_tests_without_any_project_file() -> None:
    assert found({"a/test_a.py": PLAIN, "b/test_b.py": PLAIN}) == (SuitePlace("", "pytest"),)


def test_each_project_of_a_monorepo() -> None:
    files = {
        "README.md": "",
        "one/pyproject.toml": "",
        "one/tests/test_one.py": PLAIN,
        "libs/two/setup.py": "",
        "libs/two/test_two.py": CASE,
        "three/pyproject.toml": "",
        "three/code.py": "",
    }
    assert found(files) == (SuitePlace("libs/two", "unittest"), SuitePlace("one", "pytest"))


def test_a_root_that_configures_pytest_is_one_suite() -> None:
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "one/setup.py": "",
        "one/test_a.py": PLAIN,
        "two/setup.py": "",
        "two/test_b.py": PLAIN,
    }
    assert found(files) == (SuitePlace("", "pytest"),)
    assert len(found(files | {"pyproject.toml": "[tool.black]\n"})) == 2


def test_projects_that_are_data_of_tests_are_no_suites() -> None:
    inner = {"tests/data/a/setup.py": "", "tests/data/a/test_x.py": PLAIN, "tests/data/b/test_x.py": PLAIN}
    assert found({"setup.py": "", "tests/test_a.py": PLAIN} | inner) == (SuitePlace("", "pytest"),)
    nested = {"one/setup.py": "", "one/tests/data/setup.py": "", "one/tests/data/test_x.py": PLAIN}
    assert found(nested) == (SuitePlace("one", "pytest"),)


def test_no_tests() -> None:
    assert found({"pyproject.toml": "", "a.py": ""}) == ()


def test_configuration_above_a_folder_counts_for_it() -> None:
    files = {"conftest.py": "", "one/test_a.py": CASE, "two/conftest.py": ""}

    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    assert runner_in("one", files, read) == "pytest"
    del files["conftest.py"]
    assert runner_in("one", files, read) == "unittest"
    assert runner_in("two", files, read) is None
