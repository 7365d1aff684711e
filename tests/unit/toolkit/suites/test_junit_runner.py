"""Runners known only by their JUnit XML: small scripts in the real sandbox write such files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, ExitCause
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.junit_runner import REPORTS
from redstart.toolkit.suites.reading.junit import read_foreign

Write = Callable[[Path, Mapping[str, str]], Path]
InSandbox = Callable[..., SuiteRun]

OLD = '<testsuite name="old"><testcase classname="old" name="stale"/></testsuite>'
RUN = """
    import os
    import sys

    os.makedirs("build/results", exist_ok=True)
    for path, text in (
        ("a", '<testsuite name="A"><testcase classname="a.A" name="adds"><failure message="1 != 2">A.java:3</failure>'
         '</testcase><testcase classname="a.A" name="each"/><testcase classname="a.A" name="each">'
         '<error message="no"/></testcase></testsuite>'),
        ("b", '<?xml version="1.0" encoding="latin-1"?><testsuites><testsuite name="B">'
         '<testcase name="gr\\xf6\\xdfe" file="b.js"/><testcase name="bare"/></testsuite></testsuites>'),
    ):
        with open(f"build/results/TEST-{path}.xml", "w", encoding="latin-1") as file:
            file.write(text)
    os.symlink("/etc/passwd", "build/results/TEST-link.xml")
    sys.exit(int(sys.argv[1]))
    """


def create_suite(code: str = "1", junit: str = "build/results/*.xml") -> Suite:
    return Suite(runner="junit", command=("python", "run.py", code), junit=junit)


@pytest.fixture
def repo(tmp_path: Path, write: Write) -> Path:
    return write(tmp_path / "repo", {"run.py": RUN, "build/results/old.xml": OLD, "nothing.py": "print('all is well')"})


@pytest.mark.slow
def test_results_come_from_reports_the_command_wrote(repo: Path, in_sandbox: InSandbox) -> None:
    suite_run = in_sandbox(repo, create_suite(), ids=["a.A::adds"])
    assert {case.id: case.outcome.value for case in suite_run.cases} == {
        "a.A::adds": "failed",
        "a.A::each": "passed",
        "a.A::each #2": "error",
        "b.js::größe": "passed",
        "B::bare": "passed",
    }
    assert (suite_run.problem, suite_run.unexplained, suite_run.report.exit_code) == ("", "", 1)
    (adds,) = [case for case in suite_run.cases if case.id == "a.A::adds"]
    assert (adds.message, adds.detail) == ("1 != 2", "A.java:3")
    assert not runner.can_select_tests(create_suite())


@pytest.mark.slow
def test_stale_report_is_not_a_result(repo: Path, in_sandbox: InSandbox) -> None:
    silent_suite = create_suite().model_copy(update={"command": ("python", "nothing.py")})
    suite_run = in_sandbox(repo, silent_suite)
    assert (suite_run.cases, suite_run.problem) == ((), "no_results")
    assert "write JUnit XML to build/results/*.xml" in suite_run.report.fault
    assert "all is well" in suite_run.report.fault


@pytest.mark.slow
def test_missing_command_is_reported(repo: Path, in_sandbox: InSandbox) -> None:
    suite_run = in_sandbox(repo, create_suite().model_copy(update={"command": ("no-such-runner",)}))
    assert (suite_run.cases, suite_run.problem, suite_run.report.exit_code) == ((), "no_results", 127)
    assert "no-such-runner: No such file or directory" in suite_run.report.fault


@pytest.mark.slow
def test_contradiction_between_exit_code_and_report_is_reported(repo: Path, in_sandbox: InSandbox) -> None:
    assert (
        in_sandbox(repo, create_suite("0")).unexplained
        == "The report lists 2 failing tests, but the exit code is 0 (all passed)."
    )
    passing_run = in_sandbox(repo, create_suite("3", "build/**/TEST-b.xml"))
    assert passing_run.unexplained == "The report lists no failing test, but the exit code is 3."


@pytest.mark.parametrize("junit", ["/tmp/a.xml", "../a.xml", "build/../../a.xml"])
def test_report_outside_the_directory_is_refused(junit: str, environment: Environment) -> None:
    with pytest.raises(ConfigError, match="outside the directory of the tests"):
        runner.request(create_suite(junit=junit), environment)


def test_report_without_a_command_is_refused(environment: Environment) -> None:
    with pytest.raises(ConfigError, match="needs a command"):
        runner.request(Suite(runner="pytest", junit="a.xml"), environment)


@pytest.mark.parametrize("left", ["", "no json", "[]", '{"reports": 3}', '{"reports": {"a.xml": "<html/>"}}'])
def test_unreadable_report_is_not_a_result(left: str) -> None:
    completed = Completed(exit_code=1, cause=ExitCause.failed, output="", files={REPORTS: left} if left else {})
    parsed = runner.read(create_suite(), completed)
    assert (parsed.cases, parsed.kind) == ([], "no_results")


def test_incomplete_reports_are_not_a_result() -> None:
    reports_text = '{"whole": false, "reports": {"a.xml": "<testsuite><testcase name=\'a\'/></testsuite>"}}'
    parsed = runner.read(
        create_suite(), Completed(exit_code=0, cause=ExitCause.ok, output="", files={REPORTS: reports_text})
    )
    assert (parsed.cases, parsed.kind) == ([], "no_results")
    assert "too large" in parsed.fault


@pytest.mark.parametrize("detailed", [True, False])
def test_output_in_a_report_is_read_if_it_is_wanted(detailed: bool) -> None:
    testcase = '<testcase name="a"><failure/><system-out>total 8</system-out></testcase>'
    files = {REPORTS: json.dumps({"whole": True, "reports": {"a.xml": f"<testsuite>{testcase}</testsuite>"}})}
    completed = Completed(exit_code=1, cause=ExitCause.failed, output="", files=files)
    (case,) = runner.read(create_suite().model_copy(update={"detailed": detailed}), completed).cases
    assert case.stdout == ("total 8" if detailed else "")


def test_tests_with_the_same_name_are_distinguished() -> None:
    testcase = '<testcase classname="A" name="x"/>'
    cases = read_foreign(
        {
            "two.xml": f"<testsuites>{testcase}<testsuite><testsuite>{testcase}</testsuite></testsuite></testsuites>",
            "one.xml": f'<testsuite>{testcase}<testcase classname="A" name="y"/></testsuite>',
        }
    )
    assert cases is not None
    assert [case.id for case in cases] == ["A::x (one.xml)", "A::y", "A::x (two.xml)", "A::x (two.xml) #2"]
