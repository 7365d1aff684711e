"""New test files for a command that names the files it runs."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.toolkit.suites.new_tests.command import include_tests

NEW = "tests/test_new.py"


@pytest.mark.parametrize(
    ("runner", "command", "expected_path"),
    [
        ("pytest", "python -m pytest tests/test_a.py", NEW),
        ("pytest", "pytest -x --tb short tests/test_a.py::test_b", NEW),
        ("pytest", "pytest --verbose tests/test_a.py", NEW),
        ("pytest", "pytest -q -- tests/test_a.py", NEW),
        ("pytest", "pytest -k slow", ""),
        ("pytest", "pytest", ""),
        ("pytest", "pytest tests", ""),
        ("pytest", "pytest ./tests/ other", ""),
        ("pytest", "pytest .", ""),
        ("pytest", "make test", ""),
        ("unittest", "python -m unittest tests.test_a", NEW),
        ("unittest", "python -m unittest discover -s tests", ""),
        ("unittest", "python -m unittest", ""),
        ("django", "python manage.py test cart -v 2", "tests.test_new"),
        ("django", "python manage.py test tests", ""),
        ("django", "python manage.py test --settings shop.test", ""),
        ("node", "node --test test/a.test.js", NEW),
        ("node", "node --test", ""),
        ("jest", "npx jest --ci test/a.test.js", NEW),
    ],
)
def test_new_file_is_added_if_the_command_would_omit_it(runner: str, command: str, expected_path: str) -> None:
    argv = tuple(command.split())
    files = [NEW, "tests/conftest.py"]
    assert include_tests(Suite(runner=runner, command=argv), files) == ((*argv, expected_path) if expected_path else ())


def test_new_file_is_named_relative_to_the_suite_directory() -> None:
    suite = Suite(runner="pytest", command=("pytest", "test_a.py"), folder="lib")
    assert include_tests(suite, ["lib/test_new.py"]) == ("pytest", "test_a.py", "test_new.py")


def test_nothing_is_added_to_a_missing_command_or_one_with_a_report() -> None:
    assert include_tests(Suite(runner="pytest", command=("pytest", "a.py"), junit="a.xml"), [NEW]) == ()
    assert include_tests(Suite(runner="pytest"), [NEW]) == ()
