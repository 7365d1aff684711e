"""Real runs of unittest on small repos, with the runner that the request includes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import IN, Completed, Environment, Variation
from redstart.toolkit.languages.python.unittest import RUNNER
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import SuiteRequest

Execute = Callable[[Path, SuiteRequest], Completed]
Write = Callable[[Path, Mapping[str, str]], Path]

SUITE = Suite(runner="unittest")

REPO = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": """
        import unittest

        from calc import add


        class AddTest(unittest.TestCase):
            def test_add(self):
                self.assertEqual(add(1, 2), 3, "adding")

            def test_list(self):
                self.assertEqual([1, 2], [1, 3])

            def test_passes(self):
                pass

            def test_error(self):
                raise ValueError("größe ☃ \\x07")

            def test_exits(self):
                raise SystemExit(0)

            def test_subtests(self):
                for i in range(3):
                    with self.subTest(i=i):
                        self.assertEqual(i, 1)

            def test_subtests_pass(self):
                with self.subTest("fine"):
                    pass

            @unittest.skip("not now")
            def test_skipped(self):
                pass

            @unittest.expectedFailure
            def test_expected(self):
                self.fail()

            @unittest.expectedFailure
            def test_unexpected(self):
                pass


        class NeedsClass(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                raise KeyError("no class")

            def test_one(self):
                pass

            def test_two(self):
                pass


        class SkippedClass(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                raise unittest.SkipTest("no machine")

            def test_one(self):
                pass


        class LeavesBadly(unittest.TestCase):
            @classmethod
            def tearDownClass(cls):
                raise KeyError("left badly")

            def test_one(self):
                pass
        """,
    "tests/test_module.py": """
        import unittest


        def setUpModule():
            raise OSError("no module")


        class ATest(unittest.TestCase):
            def test_one(self):
                pass
        """,
    "tests/test_cannot_import.py": "import no_such_module\n",
    "tests/test_whole_module_skipped.py": 'import unittest\n\nraise unittest.SkipTest("whole")\n',
    "test/test_plain_folder.py": """
        import unittest

        from calc import add


        class PlainTest(unittest.TestCase):
            def test_plain(self):
                self.assertEqual(add(2, 1), 1)
        """,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, write: Write) -> Path:
    return write(tmp_path_factory.mktemp("repo"), REPO)


@pytest.fixture(scope="module")
def cases(root: Path, execute: Execute, environment: Environment) -> dict[str, Case]:
    completed = execute(root, runner.request(SUITE, environment))
    parsed = runner.read(SUITE, completed)
    assert (parsed.fault, completed.exit_code) == ("", 1), completed.output
    assert runner.find_contradiction(SUITE, parsed.cases, completed) == ""
    assert len({case.id for case in parsed.cases}) == len(parsed.cases)
    return {case.id: case for case in parsed.cases}


EXPECTED = [
    ("tests.test_calc.AddTest.test_add", "failed", "AssertionError: -1 != 3 : adding"),
    ("tests.test_calc.AddTest.test_list", "failed", "AssertionError: Lists differ: [1, 2] != [1, 3]"),
    ("tests.test_calc.AddTest.test_passes", "passed", ""),
    ("tests.test_calc.AddTest.test_error", "error", "ValueError: größe ☃ \N{REPLACEMENT CHARACTER}"),
    ("tests.test_calc.AddTest.test_exits", "error", "SystemExit: 0"),
    ("tests.test_calc.AddTest.test_subtests", "failed", "AssertionError: 0 != 1"),
    ("tests.test_calc.AddTest.test_subtests_pass", "passed", ""),
    ("tests.test_calc.AddTest.test_skipped", "skipped", "not now"),
    ("tests.test_calc.AddTest.test_expected", "skipped", "expected failure"),
    ("tests.test_calc.AddTest.test_unexpected", "failed", "Unexpected success"),
    ("tests.test_calc.NeedsClass.test_one", "error", "KeyError: 'no class'"),
    ("tests.test_calc.NeedsClass.test_two", "error", "KeyError: 'no class'"),
    ("tests.test_calc.SkippedClass.test_one", "skipped", "no machine"),
    ("tests.test_calc.LeavesBadly.test_one", "passed", ""),
    ("tests.test_calc.LeavesBadly.tearDownClass", "error", "KeyError: 'left badly'"),
    ("tests.test_module.ATest.test_one", "error", "OSError: no module"),
    ("tests.test_cannot_import", "error", "ModuleNotFoundError: No module named 'no_such_module'"),
    ("tests.test_whole_module_skipped", "skipped", "whole"),
    ("test_plain_folder.PlainTest.test_plain", "passed", ""),
]


@pytest.mark.slow
@pytest.mark.parametrize(("case_id", "outcome", "message"), EXPECTED)
def test_each_case_has_its_outcome_and_message(
    cases: dict[str, Case], case_id: str, outcome: str, message: str
) -> None:
    assert (cases[case_id].outcome, cases[case_id].message) == (outcome, message)


def test_nothing_else_is_reported(cases: dict[str, Case]) -> None:
    assert set(cases) == {case_id for case_id, _, _ in EXPECTED}


def test_expected_and_actual_values_are_extracted(cases: dict[str, Case]) -> None:
    case = cases["tests.test_calc.AddTest.test_add"]
    assert (case.actual, case.expected) == ("-1", "3")
    case = cases["tests.test_calc.AddTest.test_list"]
    assert (case.actual, case.expected) == ("[1, 2]", "[1, 3]")


def test_detail_has_frames_relative_to_the_root_and_every_failing_subtest(cases: dict[str, Case]) -> None:
    assert 'File "tests/test_calc.py", line 8, in test_add' in cases["tests.test_calc.AddTest.test_add"].detail
    detail = cases["tests.test_calc.AddTest.test_subtests"].detail
    assert "(i=0)" in detail
    assert "(i=2)" in detail
    assert "import no_such_module" in cases["tests.test_cannot_import"].detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selected_ids", "expected"),
    [
        (["tests.test_calc.AddTest.test_add"], {"tests.test_calc.AddTest.test_add"}),
        (["test_plain_folder.PlainTest.test_plain"], {"test_plain_folder.PlainTest.test_plain"}),
        (["tests.test_cannot_import"], {"tests.test_cannot_import"}),
        (["tests.test_cannot_import.GoneTest.test_gone"], {"tests.test_cannot_import"}),
        (["tests.test_calc.NeedsClass.test_two"], {"tests.test_calc.NeedsClass.test_two"}),
        (
            ["tests.test_calc.LeavesBadly.tearDownClass"],
            {"tests.test_calc.LeavesBadly.test_one", "tests.test_calc.LeavesBadly.tearDownClass"},
        ),
        (["tests.test_module"], {"tests.test_module.ATest.test_one"}),
    ],
)
def test_only_selected_ids_run(
    root: Path, execute: Execute, environment: Environment, selected_ids: list[str], expected: set[str]
) -> None:
    completed = execute(root, runner.request(SUITE, environment, selected_ids))
    assert {case.id for case in runner.read(SUITE, completed).cases} == expected


@pytest.mark.slow
def test_unknown_id_means_no_tests(root: Path, execute: Execute, environment: Environment) -> None:
    completed = execute(root, runner.request(SUITE, environment, ["tests.test_calc.AddTest.test_gone"]))
    assert runner.read(SUITE, completed).kind == "no_tests"


@pytest.mark.slow
def test_user_arguments_except_failfast_are_kept(root: Path, execute: Execute, environment: Environment) -> None:
    argv = (
        "python",
        "-m",
        "unittest",
        "discover",
        "-f",
        "-s",
        "tests",
        "-t",
        ".",
        "-p",
        "test_c*.py",
        "-k",
        "AddTest",
    )
    suite = Suite(runner="unittest", command=argv)
    ids = {case.id for case in runner.read(suite, execute(root, runner.request(suite, environment))).cases}
    assert ids == {item for item, _, _ in EXPECTED if "AddTest" in item or item == "tests.test_cannot_import"}
    suite = Suite(runner="unittest", command=("python", "-m", "unittest", "tests.test_calc.AddTest.test_add", "-v"))
    ids = {case.id for case in runner.read(suite, execute(root, runner.request(suite, environment))).cases}
    assert ids == {"tests.test_calc.AddTest.test_add"}


@pytest.mark.slow
def test_other_command_runs_unchanged_and_reports_missing_results(
    root: Path, execute: Execute, environment: Environment
) -> None:
    suite = Suite(runner="unittest", command=("sh", "-c", "echo all fine"))
    request = runner.request(suite, environment, ["tests.test_calc.AddTest.test_add"])
    assert (request.argv, request.files_in) == (suite.command, {})
    parsed = runner.read(suite, execute(root, request))
    assert parsed.kind == "no_results"
    assert "python -m unittest" in parsed.fault
    assert "all fine" in parsed.fault


@pytest.mark.slow
def test_repo_without_tests_reports_no_tests(tmp_path: Path, execute: Execute, environment: Environment) -> None:
    completed = execute(tmp_path, runner.request(SUITE, environment))
    assert completed.exit_code == 5
    assert runner.read(SUITE, completed).kind == "no_tests"


@pytest.mark.slow
def test_two_modules_with_one_name_are_an_error_not_a_crash(
    tmp_path: Path, execute: Execute, write: Write, environment: Environment
) -> None:
    text = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"
    write(tmp_path, {"test_same.py": text, "tests/test_same.py": text})
    parsed = runner.read(SUITE, execute(tmp_path, runner.request(SUITE, environment)))
    assert [(case.id, case.outcome) for case in parsed.cases] == [("tests", "error"), ("test_same.T.test_a", "passed")]


def test_runner_script_is_included_in_the_request(environment: Environment) -> None:
    request = runner.request(SUITE, environment)
    assert request.argv[:2] == (environment.python, f"{IN}/{RUNNER}")
    assert "xml.etree" in request.files_in[RUNNER]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_another_order_gives_the_same_results(
    order: str, root: Path, cases: dict[str, Case], execute: Execute, environment: Environment
) -> None:
    variation = Variation(order=order, seed=3)
    orders: list[list[str]] = []
    for _ in range(2):
        parsed = runner.read(SUITE, execute(root, runner.request(SUITE, environment, variation=variation)))
        assert {case.id: case.outcome for case in parsed.cases} == {item: case.outcome for item, case in cases.items()}
        orders.append([case.id for case in parsed.cases])
    assert orders[0] == orders[1] != list(cases)


PRINTING = """
    import logging
    import sys
    import unittest
    from contextlib import redirect_stdout
    from io import StringIO


    class CartTest(unittest.TestCase):
        def setUp(self):
            print("set up")

        def test_red(self):
            print("the total is", 8)
            sys.stderr.write("complaint \\x07\\n")
            logging.getLogger("cart").warning("logged")
            with redirect_stdout(StringIO()) as text:
                print("redirected")
            self.assertEqual(text.getvalue(), "")

        def test_red_too(self):
            print("x" * 50_000 + "end")
            for number in range(2):
                with self.subTest(number=number):
                    print("subtest", number)
                    self.fail()

        def test_green(self):
            print("nobody asks")
            self.assertIs(sys.stdout, sys.__stdout__)

        def test_silent(self):
            self.fail()
"""


@pytest.mark.slow
@pytest.mark.parametrize("detailed", [True, False])
def test_failing_tests_have_their_own_output_if_it_is_wanted(
    detailed: bool, tmp_path: Path, execute: Execute, write: Write, environment: Environment
) -> None:
    write(tmp_path, {"test_cart.py": PRINTING})
    suite = Suite(runner="unittest", detailed=detailed)
    completed = execute(tmp_path, runner.request(suite, environment))
    cases = {case.id.rpartition(".")[2]: case for case in runner.read(suite, completed).cases}
    assert [name for name, case in cases.items() if not case.is_red] == ["test_green"]
    assert "the total is 8" in completed.output
    printed = {name: (case.stdout, case.stderr) for name, case in cases.items() if case.stdout or case.stderr}
    if not detailed:
        assert printed == {}
        return
    assert printed.pop("test_red") == ("set up\nthe total is 8", "complaint \N{REPLACEMENT CHARACTER}\nlogged")
    assert printed.pop("test_silent") == ("set up", "")
    stdout, stderr = printed.pop("test_red_too")
    assert (stdout.endswith("xend\nsubtest 0\nsubtest 1"), stderr) == (True, "")
    assert printed == {}
