"""Python's test runners: pytest, unittest and Django."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from redstart.core.report import Case
from redstart.core.shell import Completed, Environment, Variation
from redstart.core.suite import Suite
from redstart.toolkit.languages.protocol import STARTERS, ReadCases, RunFault, SuiteRunner, beside
from redstart.toolkit.languages.python import django, pytest, unittest
from redstart.toolkit.languages.python.node_ids import pytest_ids
from redstart.toolkit.languages.python.sentinel import read_sentinel
from redstart.toolkit.languages.python.spectrum import watched
from redstart.toolkit.suites.detection.command import end_of_start
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.reading.junit import dotted_ids, read_cases
from redstart.toolkit.suites.request import SuiteRequest

PYTEST = "pytest"
_NO_PYTEST = re.compile(
    r"No module named '?pytest'?$|^(?:\S+: )*(?:line )?\d*:? ?pytest: (?:command )?not found$", re.MULTILINE
)
_COVERAGE = re.compile(r"^(?:FAIL Required test coverage|ERROR: Coverage failure)", re.MULTILINE)


class PythonRunner(SuiteRunner):
    def command(
        self,
        suite: Suite,
        environment: Environment,
        *,
        ids: Sequence[str],
        sentinel: Sequence[str],
        vary: Variation,
        test_cpu: int,
    ) -> SuiteRequest:
        if suite.runner == PYTEST:
            return pytest.command(suite, environment, ids=ids, sentinel=sentinel, vary=vary, test_cpu=test_cpu)
        start = unittest.command if suite.runner == "unittest" else django.command
        return start(suite, environment, ids=ids, sentinel=sentinel, vary=vary)

    def another_command(
        self, suite: Suite, environment: Environment, completed: Completed, vary: Variation
    ) -> SuiteRequest | None:
        if suite.runner != PYTEST or not pytest.lost_plugin(completed.output):
            return None
        return pytest.command(suite, environment, vary=vary, plain=True)

    def read(self, suite: Suite, completed: Completed) -> ReadCases:
        # A pytest run that ended before it could write leaves an empty file.
        texts = [completed.files[name] for name in pytest.REPORTS if completed.files.get(name)]
        ids_of = pytest_ids if suite.runner == PYTEST else dotted_ids
        return ReadCases(read_cases(texts, ids_of) if texts else None, bool(texts))

    def selects(self, suite: Suite) -> bool:
        if suite.runner == "django":
            return not suite.command or django.parse_command(suite.command) is not None
        return suite.runner == PYTEST or unittest.unittest_arguments(suite.command) is not None

    def gives_exit_code(self, suite: Suite) -> bool:
        if suite.runner != PYTEST:
            return True
        return not suite.command or bool(end_of_start(suite.command, "pytest", "py.test"))

    def explains(self, suite: Suite, cases: Sequence[Case], completed: Completed) -> bool:
        if self.gives_exit_code(suite) and completed.exit_code == 5:
            return not any(case.outcome == "passed" for case in cases)
        is_own_code = self.gives_exit_code(suite)
        return (completed.exit_code == 1 or not is_own_code) and bool(_COVERAGE.search(completed.output))

    def fault(self, suite: Suite, completed: Completed) -> RunFault | None:
        if suite.runner == PYTEST and _NO_PYTEST.search(completed.output):
            return RunFault("pytest is not installed for the interpreter that runs the tests.", SuiteProblem.no_pytest)
        return None

    def absent(self, suite: Suite) -> str:
        program = suite.command[0]
        if program in STARTERS:
            return super().absent(suite)
        return (
            f"{program} is not installed where the tests run. Install it in the project's environment (pip install "
            f"{program}), name an environment that has it with --python, or start the tests without it: "
            "--test-cmd pytest."
        )

    def hint(self, suite: Suite, completed: Completed) -> str:
        if suite.runner == "unittest" and suite.command:
            return "Results per test need the command `python -m unittest ...`, or --junit PATH. "
        if suite.runner == "django" and suite.command and django.parse_command(suite.command) is None:
            return "Results per test need the command `python manage.py test ...`, or --junit PATH. "
        if suite.runner == PYTEST and not self.gives_exit_code(suite):
            return (
                "Results per test need a command that starts pytest, or --junit PATH with what it writes. "
                "The exit code alone proves nothing about any test. "
            )
        return "Does the command start pytest? " if suite.runner == PYTEST and completed.exit_code in (0, 1) else ""

    def watched(
        self, suite: Suite, environment: Environment, red: Sequence[str], ids: Sequence[str]
    ) -> SuiteRequest | None:
        return watched(suite, environment, red, ids) if suite.runner == PYTEST else None

    def misplaced(self, suite: Suite, environment: Environment, completed: Completed) -> str:
        seen = read_sentinel(completed, environment, suite.folder)
        return f"{seen.fault} {seen.remedy}" if seen and seen.fault else ""

    def added_words(self, suite: Suite, files: Sequence[str]) -> list[str]:
        words = suite.command
        if suite.runner == PYTEST:
            end = end_of_start(words, "pytest", "py.test")
            return beside(pytest.named_paths(words[end:]), files) if end else []
        if suite.runner == "unittest":
            found = unittest.unittest_arguments(words)
            named = [word for word in found[1] if not word.startswith("-")] if found else []
            return [] if not named or named[0] == "discover" else beside(named, files)
        manage = django.parse_command(words)
        labels = django.labels_in(manage.arguments) if manage else ()
        added = beside([label.replace(".", "/") for label in labels], files)
        return [file.removesuffix(".py").replace("/", ".") for file in added]

    def describe(self, suite: Suite) -> str:
        return "Django tests" if suite.runner == "django" else suite.runner

    def describe_interpreter(self, suite: Suite, environment: Environment) -> str:
        name = PurePosixPath(environment.python).name
        return f"{name} ({environment.chosen})" if environment.chosen else name
