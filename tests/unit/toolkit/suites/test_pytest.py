"""Real runs of pytest on small repos: the report has the same IDs that pytest prints."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.toolkit.languages.python.pytest import (
    IDS_LIMIT,
    IDS_SIZE,
    OPTIONS,
    PLAIN_OPTIONS,
    build_pytest_request,
    select_arguments,
)
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import SuiteRequest

Execute = Callable[[Path, SuiteRequest], Completed]
Write = Callable[[Path, Mapping[str, str]], Path]

SUITE = Suite(runner="pytest")

REPO = {
    "pyproject.toml": """
        [tool.pytest.ini_options]
        addopts = "-x -q --strict-config --strict-markers --color=yes --junit-prefix=ours --lf --tb=line"
        junit_logging = "all"
        python_files = ["test_*.py", "tests.py"]
        """,
    "calc.py": """
        def add(a, b):
            return a - b


        def deep(value):
            return add(value, value)["key"]
        """,
    "tests/base.py": """
        class Shared:
            def test_shared(self):
                assert self.value == 2
        """,
    "tests/test_calc.py": """
        import unittest

        import pytest

        from base import Shared
        from calc import add, deep


        def test_add():
            assert add(1, 2) == 3


        def test_deep():
            deep(1)


        def test_passes():
            print("quiet")


        class TestOuter:
            class TestInner:
                @pytest.mark.parametrize("x", ["a.b", "a/b", "a::b", "é", "[x]", "a b", "\\n", "", "<&>", "\\x00"])
                def test_odd(self, x):
                    assert x == "a.b"


        class TestInherits(Shared):
            value = 1


        class TestCased(unittest.TestCase):
            def test_subtests(self):
                for i in range(3):
                    with self.subTest(i=i):
                        self.assertEqual(i, 1)

            @unittest.skip("not now")
            def test_skipped(self):
                pass
        """,
    "tests/test_inherits_only.py": """
        from base import Shared


        class TestElsewhere(Shared):
            value = 3
        """,
    "tests/test_fixtures.py": """
        import pytest


        @pytest.fixture
        def broken():
            raise KeyError("no such thing")


        @pytest.fixture
        def leaves_badly():
            yield
            raise KeyError("left badly")


        def test_broken_setup(broken):
            pass


        def test_red_and_broken_teardown(leaves_badly):
            assert 1 == 2


        def test_broken_teardown(leaves_badly):
            pass


        @pytest.mark.xfail(reason="known")
        def test_xfail():
            assert False


        @pytest.mark.xfail
        def test_xpass():
            pass


        @pytest.mark.xfail(strict=True, reason="known")
        def test_xpass_strict():
            pass


        def test_skip():
            pytest.skip("no machine")
        """,
    "tests/test_cannot_import.py": "import no_such_module\n\n\ndef test_never():\n    pass\n",
    "tests/test_syntax.py": "def test_never(:\n    pass\n",
    "tests/test_whole_module_skipped.py": 'import pytest\n\npytest.skip("whole", allow_module_level=True)\n',
    "tests/v1.2/test_ünïcode.py": 'def test_größe():\n    assert "größe ☃" == "klein"\n',
    "app/tests.py": "def test_in_app():\n    pass\n",
    "sub/pyproject.toml": "[tool.pytest.ini_options]\n",
    "sub/test_sub.py": "def test_sub():\n    assert []\n",
}


class Ran:
    def __init__(self, root: Path, completed: Completed) -> None:
        self.root, self.completed = root, completed
        parsed = runner.read(SUITE, completed)
        assert (parsed.fault, parsed.kind) == ("", ""), completed.output
        self.cases: dict[str, Case] = {case.id: case for case in parsed.cases}
        assert len(self.cases) == len(parsed.cases)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, execute: Execute, write: Write, environment: Environment) -> Ran:
    root = write(tmp_path_factory.mktemp("repo"), REPO)
    return Ran(root, execute(root, build_pytest_request(SUITE, environment)))


def collect_ids(root: Path, environment: Environment, *arguments: str) -> set[str]:
    out = subprocess.run(
        [environment.python, "-m", "pytest", "--collect-only", "-q", "--rootdir=.", "--color=no", *arguments],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    ).stdout
    return {line for line in out.splitlines() if "::" in line and not line.startswith("ERROR")}


@pytest.mark.slow
def test_ids_match_the_ids_printed_by_pytest(ran: Ran, environment: Environment) -> None:
    expected = collect_ids(ran.root, environment, "-o", "addopts=")
    assert len(expected) >= 25
    not_collected = {"tests/test_cannot_import.py", "tests/test_syntax.py", "tests/test_whole_module_skipped.py"}
    assert set(ran.cases) == expected | not_collected


@pytest.mark.parametrize(
    ("case_id", "outcome", "message"),
    [
        ("tests/test_calc.py::test_add", "failed", "assert -1 == 3\n +  where -1 = add(1, 2)"),
        ("tests/test_calc.py::test_deep", "failed", "TypeError: 'int' object is not subscriptable"),
        ("tests/test_calc.py::test_passes", "passed", ""),
        ("tests/test_calc.py::TestInherits::test_shared", "failed", "AssertionError"),
        ("tests/test_inherits_only.py::TestElsewhere::test_shared", "failed", "AssertionError"),
        ("tests/test_calc.py::TestCased::test_subtests", "failed", "AssertionError: 0 != 1"),
        ("tests/test_calc.py::TestCased::test_skipped", "skipped", "not now"),
        ("tests/test_fixtures.py::test_broken_setup", "error", "KeyError: 'no such thing'"),
        ("tests/test_fixtures.py::test_red_and_broken_teardown", "failed", "assert 1 == 2"),
        ("tests/test_fixtures.py::test_broken_teardown", "error", "KeyError: 'left badly'"),
        ("tests/test_fixtures.py::test_xfail", "skipped", "known"),
        ("tests/test_fixtures.py::test_xpass", "passed", ""),
        ("tests/test_fixtures.py::test_xpass_strict", "failed", "[XPASS(strict)] known"),
        ("tests/test_fixtures.py::test_skip", "skipped", "no machine"),
        ("tests/test_cannot_import.py", "error", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("tests/test_syntax.py", "error", "SyntaxError: invalid syntax"),
        ("tests/test_whole_module_skipped.py", "skipped", "collection skipped"),
        ("tests/v1.2/test_ünïcode.py::test_größe", "failed", "AssertionError: assert 'größe ☃' == 'klein'"),
        ("app/tests.py::test_in_app", "passed", ""),
        ("sub/test_sub.py::test_sub", "failed", "assert []"),
    ],
)
def test_each_case_says_what_happened(ran: Ran, case_id: str, outcome: str, message: str) -> None:
    case = ran.cases[case_id]
    assert case.outcome == outcome
    assert case.message.startswith(message)
    assert bool(case.message) == bool(message)


def test_detail_has_source_introspection_and_frames(ran: Ran) -> None:
    detail = ran.cases["tests/test_calc.py::test_deep"].detail
    assert "def test_deep():" in detail
    assert "calc.py:6: TypeError" in detail
    assert "tests/test_calc.py:14:" in detail
    assert "where -1 = add(1, 2)" in ran.cases["tests/test_calc.py::test_add"].detail
    assert not any("\x1b" in case.detail or "#x1B" in case.detail for case in ran.cases.values())


def test_test_that_fails_and_errors_is_one_case_with_both_tracebacks(ran: Ran) -> None:
    detail = ran.cases["tests/test_fixtures.py::test_red_and_broken_teardown"].detail
    assert "assert 1 == 2" in detail
    assert "left badly" in detail


def test_expected_and_actual_values_are_extracted(ran: Ran) -> None:
    case = ran.cases["tests/test_calc.py::test_add"]
    assert (case.actual, case.expected) == ("-1", "3")
    case = ran.cases["tests/test_calc.py::TestCased::test_subtests"]
    assert (case.actual, case.expected) == ("0", "1")


def test_exit_code_and_report_agree(ran: Ran) -> None:
    assert ran.completed.exit_code == 1
    assert runner.find_contradiction(SUITE, list(ran.cases.values()), ran.completed) == ""


@pytest.mark.slow
def test_selected_ids_run_under_the_same_names(ran: Ran, execute: Execute, environment: Environment) -> None:
    ids = [item for item in ran.cases if "test_odd" in item or "Elsewhere" in item or "größe" in item or "sub/" in item]
    assert len(ids) >= 13
    parsed = runner.read(SUITE, execute(ran.root, runner.request(SUITE, environment, ids)))
    assert {case.id: case.outcome for case in parsed.cases} == {id_: ran.cases[id_].outcome for id_ in ids}


@pytest.mark.slow
def test_ids_in_a_directory_with_its_own_configuration_are_unchanged(
    ran: Ran, execute: Execute, environment: Environment
) -> None:
    parsed = runner.read(
        SUITE, execute(ran.root, build_pytest_request(SUITE, environment, ids=["sub/test_sub.py::test_sub"]))
    )
    assert [case.id for case in parsed.cases] == ["sub/test_sub.py::test_sub"]


@pytest.mark.slow
def test_user_command_gets_the_report_by_argument(ran: Ran, execute: Execute, environment: Environment) -> None:
    suite = Suite(runner="pytest", command=("python", "-m", "pytest", "tests/test_calc.py", "-x", "-k", "add or deep"))
    completed = execute(ran.root, build_pytest_request(suite, environment))
    assert {case.id for case in runner.read(suite, completed).cases} == {
        "tests/test_calc.py::test_add",
        "tests/test_calc.py::test_deep",
    }
    completed = execute(ran.root, build_pytest_request(suite, environment, ids=["tests/test_calc.py::test_deep"]))
    assert [case.id for case in runner.read(suite, completed).cases] == ["tests/test_calc.py::test_deep"]


@pytest.mark.slow
def test_command_that_starts_pytest_indirectly_gets_the_report(
    ran: Ran, execute: Execute, environment: Environment
) -> None:
    script = f"{environment.python} -m pytest tests/test_fixtures.py; exit 2"
    suite = Suite(runner="pytest", command=("sh", "-c", script))
    completed = execute(ran.root, build_pytest_request(suite, environment))
    parsed = runner.read(suite, completed)
    assert len(parsed.cases) == 7
    assert runner.find_contradiction(suite, parsed.cases, completed) == ""
    only_id = "tests/test_fixtures.py::test_xfail"
    parsed = runner.read(suite, execute(ran.root, build_pytest_request(suite, environment, ids=[only_id])))
    assert [case.id for case in parsed.cases] == [only_id]


def test_addopts_of_the_environment_are_preserved(environment: Environment) -> None:
    with_own = environment.model_copy(update={"variables": {"PYTEST_ADDOPTS": "-m 'not slow'"}})
    request = build_pytest_request(Suite(runner="pytest", command=("make", "test")), with_own)
    assert request.argv == ("make", "test")
    assert request.variables["PYTEST_ADDOPTS"].startswith("-m 'not slow' -p redstart_pytest ")
    assert request.variables["REDSTART_ADDOPTS"] == "-m 'not slow'"


@pytest.mark.parametrize(
    ("argv", "ids", "expected"),
    [
        (("pytest", "tests"), (), ("pytest", "tests", *OPTIONS)),
        (("uv", "run", "pytest", "-v", "tests"), ("a::b",), ("uv", "run", "pytest", "-v", *OPTIONS, "a::b")),
        (("pytest", "--", "tests"), (), ("pytest", *OPTIONS, "--", "tests")),
        (("pytest", "-n", "4", "a", "b"), ("a::b",), ("pytest", "-n", "4", *OPTIONS, "a::b")),
        (
            ("pytest", "--cov=x", "tests", "-m", "slow"),
            ("a::b",),
            ("pytest", "--cov=x", "-m", "slow", *OPTIONS, "a::b"),
        ),
    ],
)
def test_user_options_are_kept_and_ids_replace_the_paths(
    argv: tuple[str, ...], ids: tuple[str, ...], expected: tuple[str, ...], environment: Environment
) -> None:
    assert build_pytest_request(Suite(runner="pytest", command=argv), environment, ids=ids).argv == expected


@pytest.mark.parametrize("argv", [("make", "pytest"), ("tox", "-e", "pytest"), ("sh", "-c", "pytest tests")])
def test_command_that_only_mentions_pytest_is_unchanged(argv: tuple[str, ...], environment: Environment) -> None:
    assert build_pytest_request(Suite(runner="pytest", command=argv), environment, ids=["a::b"]).argv == argv


def test_many_ids_are_replaced_by_their_files_or_everything() -> None:
    few_ids = [f"tests/test_a.py::test_{n}" for n in range(IDS_LIMIT)]
    assert select_arguments(few_ids) == tuple(few_ids)
    assert select_arguments([*few_ids, "tests/test_b.py::test_x"]) == ("tests/test_a.py", "tests/test_b.py")
    assert select_arguments(["tests/test_a.py::test_x[" + "é" * (IDS_SIZE // 2) + "]"]) == ("tests/test_a.py",)
    assert select_arguments([f"tests/test_{n}.py::test" for n in range(IDS_LIMIT + 1)]) == ()


@pytest.mark.slow
def test_plain_arguments_give_the_same_results_without_our_plugin(
    ran: Ran, execute: Execute, environment: Environment
) -> None:
    suite = Suite(runner="pytest", command=("python", "-E", "-m", "pytest"))
    request = build_pytest_request(suite, environment, sentinel=("calc",))
    assert (request.argv[-len(PLAIN_OPTIONS) :], request.files_in) == (PLAIN_OPTIONS, {})
    parsed = runner.read(suite, execute(ran.root, request))
    outcomes = {case.id: case.outcome for case in parsed.cases}
    assert outcomes == {item: case.outcome for item, case in ran.cases.items()}


@pytest.mark.slow
def test_command_that_hides_our_plugin_is_rerun_without_it(
    ran: Ran, execute: Execute, environment: Environment
) -> None:
    script = f"PYTHONPATH=. {environment.python} -m pytest tests/test_fixtures.py"
    suite = Suite(runner="pytest", command=("sh", "-c", script))
    lost_result = execute(ran.root, runner.request(suite, environment, ["tests/test_fixtures.py::test_xfail"]))
    assert runner.read(suite, lost_result).cases == []
    second_request = runner.build_replacement_request(suite, environment, lost_result)
    assert second_request is not None
    completed = execute(ran.root, second_request)
    assert len(runner.read(suite, completed).cases) == 7
    assert runner.build_replacement_request(suite, environment, completed) is None


@pytest.mark.slow
def test_repo_without_tests_reports_no_tests(tmp_path: Path, execute: Execute, environment: Environment) -> None:
    completed = execute(tmp_path, build_pytest_request(SUITE, environment))
    assert completed.exit_code == 5
    assert runner.read(SUITE, completed).kind == "no_tests"


HOOK = "def pytest_runtest_logfinish(nodeid):\n    if 'second' in nodeid:\n        raise ValueError('a hook broke')\n"


GREEN_REPORT = "The report lists no failing test, but the exit code"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "failing_ids", "contradiction", "fault"),
    [
        (
            "def test_second(): pass",
            [],
            "The report lists no failing test, but the exit code is 3 (internal error).",
            "",
        ),
        ("def test_first(): assert 0\n\n\ndef test_second(): pass", ["test_it.py::test_first"], "", ""),
        (None, [], "", "the exit code is 3 (internal error)"),
    ],
)
def test_internal_failure_of_pytest_is_not_a_test(
    tmp_path: Path,
    execute: Execute,
    environment: Environment,
    tests: str | None,
    failing_ids: list[str],
    contradiction: str,
    fault: str,
) -> None:
    """No patch can make it pass: without the failure it is not in the report."""
    hook = HOOK if tests else "def pytest_collection_modifyitems(items):\n    raise ValueError('a hook broke')\n"
    (tmp_path / "conftest.py").write_text(hook)
    (tmp_path / "test_it.py").write_text(tests or "def test_first(): pass")
    completed = execute(tmp_path, build_pytest_request(SUITE, environment))
    parsed = runner.read(SUITE, completed)
    assert [case.id for case in parsed.cases if case.is_red] == failing_ids
    assert runner.find_contradiction(SUITE, parsed.cases, completed) == contradiction
    assert fault in parsed.fault
    assert "ValueError: a hook broke" in completed.output


@pytest.mark.slow
def test_unknown_id_is_explained_by_the_output(ran: Ran, execute: Execute, environment: Environment) -> None:
    parsed = runner.read(
        SUITE, execute(ran.root, build_pytest_request(SUITE, environment, ids=["tests/test_calc.py::test_gone"]))
    )
    assert (parsed.cases, parsed.kind) == ([], "no_results")
    assert "4 (usage error)" in parsed.fault
    assert "test_gone" in parsed.fault


def test_sample_covers_every_outcome(ran: Ran) -> None:
    assert {case.outcome for case in ran.cases.values()} == set(Outcome)
