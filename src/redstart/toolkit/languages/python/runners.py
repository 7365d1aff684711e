"""Python's test runners: pytest, unittest and Django."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from redstart.core.report import Case
from redstart.core.shell import Completed, Environment, Variation
from redstart.core.suite import Suite
from redstart.toolkit.languages.protocol import STARTERS, ReadCases, RunFault, SuiteRunner, list_unnamed_files
from redstart.toolkit.languages.python import django, pytest, unittest
from redstart.toolkit.languages.python.captured_output import add_captured_output
from redstart.toolkit.languages.python.node_ids import pytest_ids
from redstart.toolkit.languages.python.sentinel import read_sentinel
from redstart.toolkit.languages.python.spectrum import build_coverage_request
from redstart.toolkit.suites.detection.command import count_start_words
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.reading.junit import build_dotted_ids, read_cases
from redstart.toolkit.suites.request import SuiteRequest

PYTEST = "pytest"
_NO_PYTEST = re.compile(
    r"No module named '?pytest'?$|^(?:\S+: )*(?:line )?\d*:? ?pytest: (?:command )?not found$", re.MULTILINE
)
_COVERAGE = re.compile(r"^(?:FAIL Required test coverage|ERROR: Coverage failure)", re.MULTILINE)


class PythonRunner(SuiteRunner):
    def build_request(
        self,
        suite: Suite,
        environment: Environment,
        *,
        ids: Sequence[str],
        sentinel: Sequence[str],
        variation: Variation,
        test_cpu: int,
    ) -> SuiteRequest:
        if suite.runner == PYTEST:
            return pytest.build_pytest_request(
                suite, environment, ids=ids, sentinel=sentinel, variation=variation, test_cpu=test_cpu
            )
        start = unittest.build_unittest_request if suite.runner == "unittest" else django.build_django_request
        return start(suite, environment, ids=ids, sentinel=sentinel, variation=variation)

    def build_retry_request(
        self, suite: Suite, environment: Environment, completed: Completed, variation: Variation
    ) -> SuiteRequest | None:
        if suite.runner != PYTEST or not pytest.has_lost_plugin(completed.output):
            return None
        return pytest.build_pytest_request(suite, environment, variation=variation, plain=True)

    def read(self, suite: Suite, completed: Completed) -> ReadCases:
        # A pytest run that ended before it could write leaves an empty file.
        texts = [completed.files[name] for name in pytest.REPORTS if completed.files.get(name)]
        create_ids = pytest_ids if suite.runner == PYTEST else build_dotted_ids
        cases = read_cases(texts, create_ids) if texts else None
        if cases and suite.detailed and suite.runner == PYTEST:
            cases = add_captured_output(cases, completed.output)
        return ReadCases(cases, bool(texts))

    def can_select_tests(self, suite: Suite) -> bool:
        if suite.runner == "django":
            return not suite.command or django.parse_command(suite.command) is not None
        return suite.runner == PYTEST or unittest.parse_unittest_arguments(suite.command) is not None

    def has_runner_exit_code(self, suite: Suite) -> bool:
        if suite.runner != PYTEST:
            return True
        return not suite.command or bool(count_start_words(suite.command, "pytest", "py.test"))

    def is_exit_code_explained(self, suite: Suite, cases: Sequence[Case], completed: Completed) -> bool:
        if self.has_runner_exit_code(suite) and completed.exit_code == 5:
            return not any(case.outcome == "passed" for case in cases)
        is_own_code = self.has_runner_exit_code(suite)
        return (completed.exit_code == 1 or not is_own_code) and bool(_COVERAGE.search(completed.output))

    def find_run_fault(self, suite: Suite, completed: Completed) -> RunFault | None:
        if suite.runner == PYTEST and _NO_PYTEST.search(completed.output):
            return RunFault("pytest is not installed for the interpreter that runs the tests.", SuiteProblem.no_pytest)
        return None

    def explain_missing_program(self, suite: Suite) -> str:
        program = suite.command[0]
        if program in STARTERS:
            return super().explain_missing_program(suite)
        return (
            f"{program} is not installed where the tests run. Install it in the project's environment (pip install "
            f"{program}), name an environment that has it with --python, or start the tests without it: "
            "--test-cmd pytest."
        )

    def suggest_remedy(self, suite: Suite, completed: Completed) -> str:
        if suite.runner == "unittest" and suite.command:
            return "Results per test need the command `python -m unittest ...`, or --junit PATH. "
        if suite.runner == "django" and suite.command and django.parse_command(suite.command) is None:
            return "Results per test need the command `python manage.py test ...`, or --junit PATH. "
        if suite.runner == PYTEST and not self.has_runner_exit_code(suite):
            return (
                "Results per test need a command that starts pytest, or --junit PATH with what it writes. "
                "The exit code alone proves nothing about any test. "
            )
        return "Does the command start pytest? " if suite.runner == PYTEST and completed.exit_code in (0, 1) else ""

    def build_coverage_request(
        self, suite: Suite, environment: Environment, failing_ids: Sequence[str], ids: Sequence[str]
    ) -> SuiteRequest | None:
        return build_coverage_request(suite, environment, failing_ids, ids) if suite.runner == PYTEST else None

    def explain_misplaced_imports(self, suite: Suite, environment: Environment, completed: Completed) -> str:
        sentinel = read_sentinel(completed, environment, suite.folder)
        return f"{sentinel.fault} {sentinel.remedy}" if sentinel and sentinel.fault else ""

    def list_added_arguments(self, suite: Suite, files: Sequence[str]) -> list[str]:
        argv = suite.command
        if suite.runner == PYTEST:
            end = count_start_words(argv, "pytest", "py.test")
            return list_unnamed_files(pytest.list_named_paths(argv[end:]), files) if end else []
        if suite.runner == "unittest":
            parsed = unittest.parse_unittest_arguments(argv)
            names = [arg for arg in parsed[1] if not arg.startswith("-")] if parsed else []
            return [] if not names or names[0] == "discover" else list_unnamed_files(names, files)
        manage = django.parse_command(argv)
        labels = django.list_labels(manage.arguments) if manage else ()
        added_files = list_unnamed_files([label.replace(".", "/") for label in labels], files)
        return [file.removesuffix(".py").replace("/", ".") for file in added_files]

    def describe(self, suite: Suite) -> str:
        return "Django tests" if suite.runner == "django" else suite.runner

    def describe_interpreter(self, suite: Suite, environment: Environment) -> str:
        name = PurePosixPath(environment.python).name
        return f"{name} ({environment.chosen})" if environment.chosen else name
