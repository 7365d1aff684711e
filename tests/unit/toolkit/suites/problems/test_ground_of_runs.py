"""A run without results per test: the runner's last output, or how the run ended, gives the reason."""

from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.core.shell import ExitCause
from redstart.toolkit.suites.problems.ground import classify, classify_run
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.problems.project import project_of
from redstart.toolkit.suites.problems.reasons import reasons, sentence


@pytest.mark.parametrize(
    ("output", "kind", "says"),
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
def test_a_run_without_results_is_named_by_what_the_runner_said(output, kind, says):
    found = classify_run(SuiteProblem.no_results, output, ExitCause.failed)
    assert found is not None
    assert found.kind == kind
    assert says in found.remedy


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
def test_a_run_that_was_ended_is_named_by_its_end(fault, cause, kind):
    found = classify_run(SuiteProblem(fault), "", cause)
    assert found is not None
    assert found.kind == kind


def test_a_conftest_that_cannot_import_the_projects_own_code_is_not_explained_away():
    of = project_of(["conftest.py", "shop/__init__.py"], lambda _: b"")
    output = (
        "ImportError while loading conftest '/r/conftest.py'.\nconftest.py:1: in <module>\n    import shop.till\n"
        "E   ModuleNotFoundError: No module named 'shop.till'\n"
    )
    assert classify_run(SuiteProblem.no_results, output, ExitCause.failed, of) is None


def test_a_run_that_says_nothing_known_is_left_open():
    assert classify_run(SuiteProblem.no_results, "Segmentation fault", ExitCause.signal) is None
    assert classify(Case(id="a", outcome=Outcome.failed), project_of((), lambda _: None)) is None


def test_what_a_test_printed_is_no_part_of_its_traceback():
    traceback = (
        "    def test_it():\n>       open('prices')\nE       FileNotFoundError\n\ntest_a.py:2: FileNotFoundError\n"
    )
    printed = "----- Captured stdout call -----\n/usr/lib/python3.11/subprocess.py:1950: FileNotFoundError\n"
    message = "FileNotFoundError: [Errno 2] No such file or directory: 'prices'"
    red = Case(id="test_a.py::test_it", outcome=Outcome.failed, message=message, detail=traceback + printed)
    assert classify(red, project_of(["test_a.py"], lambda _: b"")) is None


def test_what_is_missing_is_installed_by_a_command_for_the_interpreter_that_lacks_it():
    project = project_of((), lambda _: None, python="/shop/.venv/bin/python")
    output = "import django\nModuleNotFoundError: No module named 'django'\n"
    found = classify_run(
        SuiteProblem.no_results, f"Traceback (most recent call last):\n{output}", ExitCause.failed, project
    )
    assert found is not None
    assert found.remedy == "/shop/.venv/bin/python -m pip install django"


def test_a_run_without_tests_says_so_once_and_suggests_an_issue():
    found = classify_run(SuiteProblem.no_tests, "", ExitCause.failed)
    assert found is not None
    grounds, first = reasons({"": found})
    said = sentence("No tests were collected.", grounds, first.remedy if first else "")
    assert said.startswith("the test run collected no tests. What to do: describe the problem")
    assert said.casefold().count("no tests") == 1
    assert "redstart fix --issue" in said
