"""What a failing test printed, read from the output of a real pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from redstart.core.report import CAPTURED_LIMIT, Case, Outcome
from redstart.testing.states import make_case
from redstart.toolkit.languages.python.captured_output import add_captured_output
from redstart.toolkit.languages.python.node_ids import pytest_ids
from redstart.toolkit.suites.reading.junit import read_cases

TESTS = """
import logging
import sys

import pytest


class TestCart:
    @pytest.mark.parametrize("n", [1, 2])
    def test_total(self, n):
        print("total of", n)
        print("to stderr", file=sys.stderr)
        logging.getLogger("cart").warning("logged")
        print("==== a heading of the test's own ====")
        assert n == 0


@pytest.fixture
def broken():
    print("from the fixture")
    raise ValueError("no cart")


def test_setup(broken):
    pass


def test_same():
    print("same name, first file")
    assert "a" == "b"


def test_silent():
    assert 0


def test_passes():
    print("nobody asks")
"""
SAME = """
def test_same():
    print("same name, second file")
    assert "c" == "d"
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "test_cart.py").write_text(TESTS)
    (folder / "test_other.py").write_text(SAME)
    options = ["-p", "no:cacheprovider", "--junitxml=junit.xml", "-o", "junit_family=xunit1", "--rootdir=."]
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_cart.py", "test_other.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    read = read_cases((folder / "junit.xml").read_text(), pytest_ids)
    assert read is not None, completed.stdout
    return {case.id: case for case in add_captured_output(read, completed.stdout)}


def test_failing_test_has_its_own_output(cases: dict[str, Case]):
    first, second = cases["test_cart.py::TestCart::test_total[1]"], cases["test_cart.py::TestCart::test_total[2]"]
    assert first.stdout == "total of 1\n==== a heading of the test's own ===="
    assert second.stdout.startswith("total of 2\n")
    assert first.stderr.startswith("to stderr\n")
    assert first.stderr.endswith("logged")


def test_output_of_a_fixture_that_fails_belongs_to_the_test(cases: dict[str, Case]):
    assert cases["test_cart.py::test_setup"].stdout == "from the fixture"


def test_tests_of_one_name_keep_their_own_output(cases: dict[str, Case]):
    assert cases["test_cart.py::test_same"].stdout == "same name, first file"
    assert cases["test_other.py::test_same"].stdout == "same name, second file"


def test_silent_and_passing_tests_have_none(cases: dict[str, Case]):
    assert (cases["test_cart.py::test_silent"].stdout, cases["test_cart.py::test_silent"].stderr) == ("", "")
    assert cases["test_cart.py::test_passes"].outcome is Outcome.passed
    assert cases["test_cart.py::test_passes"].stdout == ""


def test_output_is_clipped_and_the_run_state_carries_none():
    block = f"{' test_a ':_^80}\ntest_a.py:1: Error\n{' Captured stdout call ':-^80}\nstart{'x' * 9000}end\n"
    (case,) = add_captured_output([make_case("test_a.py::test_a", detail="test_a.py:1: Error")], block)
    assert (case.stdout[:5], case.stdout[-3:]) == ("start", "end")
    assert len(case.stdout.encode()) <= CAPTURED_LIMIT
    assert case.shorten().stdout == ""
