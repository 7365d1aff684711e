from __future__ import annotations

import pytest

from redstart.toolkit.languages.python.detect import detect_runner
from redstart.toolkit.languages.registry import is_test_path

CASED = "import unittest\n\n\nclass ATest(unittest.TestCase):\n    def test_a(self):\n        pass\n"
IMPORTED_CASE = "from unittest import TestCase\n\n\nclass ATest(TestCase):\n    def test_a(self):\n        pass\n"
PLAIN_CLASS = "class TestB:\n    def test_b(self):\n        pass\n"
PLAIN = "def test_a():\n    assert True\n"


def detect(files: dict[str, str]) -> str | None:
    return detect_runner(files, lambda path: files[path].encode() if path in files else None)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"src/a.py": "import unittest"}, None),
        ({"tests/__init__.py": "", "tests/helpers.py": "x = 1"}, None),
        ({"conftest.py": ""}, None),
        ({"pytest.ini": "[pytest]"}, None),
        ({"pytest.ini": "[pytest]\naddopts = --doctest-modules"}, "pytest"),
        ({"pytest.ini": "[pytest]\npython_files = check_*.py", "check_a.py": PLAIN}, "pytest"),
        ({"tests/test_a.py": CASED}, "unittest"),
        ({"tests/test_a.py": IMPORTED_CASE, "tests/__init__.py": "", "tests/helpers.py": "x = 1"}, "unittest"),
        ({"app/tests.py": CASED}, "unittest"),
        ({"bob.py": "x = 1", "bob_test.py": CASED}, "pytest"),
        ({"tests/test_a.py": CASED, "tests/b_test.py": CASED}, "pytest"),
        ({"tests/test_a_test.py": CASED}, "unittest"),
        ({"tests/test_a.py": PLAIN}, "pytest"),
        ({"tests/checks.py": PLAIN}, "pytest"),
        ({"tests/test_a.py": CASED, "tests/test_b.py": PLAIN}, "pytest"),
        ({"tests/test_a.py": CASED, "tests/test_b.py": "async def test_b():\n    pass\n"}, "pytest"),
        ({"tests/test_a.py": CASED, "tests/test_b.py": PLAIN_CLASS}, "pytest"),
        ({"tests/test_a.py": CASED + PLAIN_CLASS}, "pytest"),
        ({"tests/test_a.py": CASED + "import pytest\n"}, "pytest"),
        ({"tests/test_a.py": CASED, "tests/helpers.py": "from pytest import fixture\n"}, "pytest"),
        ({"tests/test_a.py": CASED, "conftest.py": ""}, "pytest"),
        ({"tests/test_a.py": "from django.test import TestCase\nclass A(TestCase):\n    pass\n"}, "pytest"),
        ({"tests/test_a.py": CASED, "pytest.ini": ""}, "pytest"),
        ({"tests/test_a.py": CASED, "sub/pytest.toml": ""}, "pytest"),
        ({"tests/test_a.py": CASED, "pyproject.toml": "[tool.pytest.ini_options]"}, "pytest"),
        ({"tests/test_a.py": CASED, "pyproject.toml": "[tool.pytest]"}, "pytest"),
        ({"tests/test_a.py": CASED, "pyproject.toml": "[tool.ruff]"}, "unittest"),
        ({"tests/test_a.py": CASED, "pyproject.toml": "tool = 3"}, "unittest"),
        ({"tests/test_a.py": CASED, "pyproject.toml": "[tool.pytest.ini_options]\nbroken ="}, "pytest"),
        ({"tests/test_a.py": CASED, "tox.ini": "[pytest]"}, "pytest"),
        ({"tests/test_a.py": CASED, "tox.ini": "[tox]\nenvlist = py\n"}, "unittest"),
        ({"tests/test_a.py": CASED, "setup.cfg": "[tool:pytest]"}, "pytest"),
        ({"tests/test_a.py": CASED, "setup.cfg": "[metadata]\nname = %(x"}, "unittest"),
        ({"tests/test_a.py": CASED, ".venv/lib/x/conftest.py": "", "node_modules/a/test_x.py": PLAIN}, "unittest"),
        ({"tests/test_a.py": "\xff def broken("}, "pytest"),
    ],
)
def test_the_runner_follows_from_the_files(files: dict[str, str], expected: str | None) -> None:
    assert detect(files) == expected


def test_unreadable_file_counts_by_its_name() -> None:
    assert detect_runner(["tests/test_a.py"], lambda _: None) == "pytest"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("test_a.py", True),
        ("a/b_test.py", True),
        ("tests/helpers.py", True),
        ("pkg/test/deep/data.py", True),
        ("conftest.py", True),
        ("app/tests.py", True),
        ("tests/data.json", True),
        ("test_a.txt", False),
        ("src/contest.py", False),
        ("src/testing.py", False),
        ("src/latest.py", False),
        ("attest/a.py", False),
    ],
)
def test_test_paths_are_recognized(path: str, expected: bool) -> None:
    assert is_test_path(path) is expected
