"""A run without results per test: the runner's last output, or how the run ended, gives the reason."""

from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.core.shell import ExitCause
from redstart.toolkit.suites.problems.environment import classify, classify_run
from redstart.toolkit.suites.problems.project import create_project_view
from redstart.toolkit.suites.problems.reasons import format_message, summarize_problems
from redstart.toolkit.suites.problems.run_problems import SuiteProblem


@pytest.mark.parametrize(
    ("output", "kind", "expected_text"),
    [
        (
            "pytest: error: unrecognized arguments: --cov=a -n 4\n  inifile: x",
            "unknown_option",
            "pytest-cov pytest-xdist",
        ),
        ("pytest: error: unrecognized arguments: --strange", "unknown_option", "--test-cmd"),
        ("ERROR: /r/pytest.ini: Unknown config option: asyncio_mode", "unknown_option", "pytest-asyncio"),
        (
            "ERROR: Missing required plugins: pytest-bar>=1, pytest-foo",
            "missing_fixture_plugin",
            "pip install 'pytest-bar>=1' pytest-foo",
        ),
        ("ERROR: p.toml: 'minversion' requires pytest-99.0, actual pytest-9.2.0", "missing_module", "pytest>=99.0"),
        (
            "ImportError: Error importing plugin \"pytest_env\": No module named 'pytest_env'",
            "missing_module",
            "pip install pytest_env",
        ),
        (
            "ImportError while loading conftest '/r/conftest.py'.\nconftest.py:1: in <module>\n    import django\n"
            "E   ModuleNotFoundError: No module named 'django'\n",
            "missing_module",
            "pip install django",
        ),
        (
            "INTERNALERROR> Traceback (most recent call last):\n"
            'INTERNALERROR>   File "/usr/lib/python3.11/socket.py", line 836, in create_connection\n'
            "INTERNALERROR>     sock.connect(sa)\n"
            "INTERNALERROR> ConnectionRefusedError: [Errno 111] Connection refused\n",
            "refused_connection",
            "start the server",
        ),
    ],
)
def test_a_run_without_results_is_named_by_what_the_runner_said(output, kind, expected_text):
    problem = classify_run(SuiteProblem.no_results, output, ExitCause.failed)
    assert problem is not None
    assert problem.kind == kind
    assert expected_text in problem.remedy


@pytest.mark.parametrize(
    ("fault", "cause", "kind"),
    [
        ("timeout", ExitCause.timeout, "timeout_of_sandbox"),
        ("timeout", ExitCause.cpu, "timeout_of_sandbox"),
        ("no_results", ExitCause.memory, "memory"),
        ("no_results", ExitCause.file_size, "full_disk"),
        ("no_tests", ExitCause.failed, "no_tests"),
        ("no_pytest", ExitCause.failed, "missing_module"),
    ],
)
def test_stopped_run_is_explained_by_its_exit_cause(fault, cause, kind):
    problem = classify_run(SuiteProblem(fault), "", cause)
    assert problem is not None
    assert problem.kind == kind


def test_conftest_that_cannot_import_project_code_is_not_excused():
    project_view = create_project_view(["conftest.py", "shop/__init__.py"], lambda _: b"")
    output = (
        "ImportError while loading conftest '/r/conftest.py'.\nconftest.py:1: in <module>\n    import shop.till\n"
        "E   ModuleNotFoundError: No module named 'shop.till'\n"
    )
    assert classify_run(SuiteProblem.no_results, output, ExitCause.failed, project_view) is None


def test_run_with_unknown_output_is_left_unexplained():
    assert classify_run(SuiteProblem.no_results, "Segmentation fault", ExitCause.signal) is None
    assert classify(Case(id="a", outcome=Outcome.failed), create_project_view((), lambda _: None)) is None


def test_captured_output_is_not_part_of_the_traceback():
    traceback = (
        "    def test_it():\n>       open('prices')\nE       FileNotFoundError\n\ntest_a.py:2: FileNotFoundError\n"
    )
    printed = "----- Captured stdout call -----\n/usr/lib/python3.11/subprocess.py:1950: FileNotFoundError\n"
    message = "FileNotFoundError: [Errno 2] No such file or directory: 'prices'"
    failed_case = Case(id="test_a.py::test_it", outcome=Outcome.failed, message=message, detail=traceback + printed)
    assert classify(failed_case, create_project_view(["test_a.py"], lambda _: b"")) is None


def test_remedy_installs_the_module_with_the_interpreter_in_use():
    project = create_project_view((), lambda _: None, python="/shop/.venv/bin/python")
    output = "import django\nModuleNotFoundError: No module named 'django'\n"
    problem = classify_run(
        SuiteProblem.no_results, f"Traceback (most recent call last):\n{output}", ExitCause.failed, project
    )
    assert problem is not None
    assert problem.remedy == "/shop/.venv/bin/python -m pip install django"


def test_run_without_tests_is_reported_once_and_suggests_an_issue():
    problem = classify_run(SuiteProblem.no_tests, "", ExitCause.failed)
    assert problem is not None
    reported_problems, first_problem = summarize_problems({"": problem})
    message = format_message(
        "No tests were collected.", reported_problems, first_problem.remedy if first_problem else ""
    )
    assert message.startswith("the test run collected no tests. What to do: describe the problem")
    assert message.casefold().count("no tests") == 1
    assert "redstart fix --issue" in message
