"""The door of the kit: what to run for a suite, and what its run says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.errors import ConfigError
from redstart.core.noun import clip, many
from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import PINNED, Completed, Environment, ExitCause, Variation
from redstart.toolkit.suites import django, foreign, node, pytest, unittest
from redstart.toolkit.suites.command import end_of_start
from redstart.toolkit.suites.junit import read_cases, read_foreign
from redstart.toolkit.suites.problem import SuiteProblem
from redstart.toolkit.suites.request import Request
from redstart.toolkit.suites.sentinel import read_sentinel

__all__ = [
    "EXIT_CODES",
    "Parsed",
    "another_request",
    "contradiction",
    "last_lines",
    "read",
    "read_sentinel",
    "request",
    "selects",
]

EXIT_CODES = {
    0: "all passed",
    1: "some tests failed",
    2: "interrupted",
    3: "internal error",
    4: "usage error",
    5: "no tests were collected",
    6: "too many warnings",
}
"""Of pytest; our unittest runner uses 0, 1 and 5 in the same sense."""

NOT_FOUND = 127
OTHER_CODE = "not a code of the runner's"

LAST_LINES = 12
LAST_SIZE = 1500

_NO_PYTEST = re.compile(
    r"No module named '?pytest'?$|^(?:\S+: )*(?:line )?\d*:? ?pytest: (?:command )?not found$", re.MULTILINE
)
_COVERAGE = re.compile(r"^(?:FAIL Required test coverage|ERROR: Coverage failure)", re.MULTILINE)


class Parsed(NamedTuple):
    cases: list[Case]
    fault: str = ""
    """In a sentence, why there are no results per test; empty where there are."""
    kind: SuiteProblem = SuiteProblem.none


def request(
    suite: Suite,
    environment: Environment,
    ids: Sequence[str] = (),
    *,
    sentinel: Sequence[str] = (),
    vary: Variation = PINNED,
    test_cpu: int = 0,
) -> Request:
    """What runs the suite, or at least the tests `ids` of it, and leaves where the packages `sentinel` come from.

    The latter is left by pytest and by our unittest runner, not by a foreign one. Raises `ConfigError` for a runner
    that is not known.
    """
    if suite.junit:
        return foreign.command(suite, environment, vary=vary)
    if suite.runner == "pytest":
        return pytest.command(suite, environment, ids=ids, sentinel=sentinel, vary=vary, test_cpu=test_cpu)
    if suite.runner == "unittest":
        return unittest.command(suite, environment, ids=ids, sentinel=sentinel, vary=vary)
    if suite.runner == "django":
        return django.command(suite, environment, ids=ids, sentinel=sentinel, vary=vary)
    if suite.runner in node.RUNNERS:
        return node.command(suite, ids=ids, vary=vary)
    raise ConfigError(
        f"unknown test runner: {suite.runner}",
        remedy="use pytest, unittest, django, node, jest, vitest or mocha, or name your command's report with --junit",
    )


def another_request(
    suite: Suite, environment: Environment, completed: Completed, vary: Variation = PINNED
) -> Request | None:
    """What to run in place of a run that did not come to its tests because of us; None for any other run."""
    if suite.junit or suite.runner != "pytest" or not pytest.lost_plugin(completed.output):
        return None
    return pytest.command(suite, environment, vary=vary, plain=True)


def selects(suite: Suite) -> bool:
    """Whether some tests can be run without the others; if not, each run is a run of the whole command."""
    if suite.junit:
        return False
    if suite.runner in ("pytest", *node.RUNNERS):
        return True
    if suite.runner == "django":
        return not suite.command or django.parse_command(suite.command) is not None
    return unittest.unittest_arguments(suite.command) is not None


def read(suite: Suite, completed: Completed) -> Parsed:
    """The results per test, or why there are none."""
    if suite.junit:
        found = foreign.gathered(completed)
        texts = list(found.reports.values())
        cases = read_foreign(found.reports) if texts else None
        if cases and not found.whole:
            return Parsed([], "The reports are too large or too many to be read whole.", SuiteProblem.no_results)
    elif suite.runner in node.RUNNERS:
        cases = node.read_node(completed)
        texts = [text for text in (completed.files.get(node.CASES, ""),) if text]
    else:
        # A run of pytest that ended before it could write has left an empty file.
        texts = [completed.files[name] for name in pytest.REPORTS if completed.files.get(name)]
        cases = read_cases(texts, suite.runner) if texts else None
    if cases:
        return Parsed(cases)
    return Parsed([], *_fault(suite, completed, bool(texts), cases is not None))


def contradiction(suite: Suite, cases: Sequence[Case], completed: Completed) -> str:
    """A sentence where exit code and report do not agree on red or green; empty where they do or there is none."""
    if not cases:
        return ""
    red = sum(case.red for case in cases)
    code = completed.exit_code
    if red and completed.cause is ExitCause.ok:
        return f"The report lists {many(red, 'failing test')}, but the exit code is 0 (all passed)."
    if red or completed.cause is ExitCause.ok or _explained(suite, cases, completed):
        return ""
    if completed.cause is not ExitCause.failed:
        return f"The report lists no failing test, but the run was stopped ({completed.cause}, exit code {code})."
    return f"The report lists no failing test, but the exit code is {code}{_meaning(suite, code)}."


def _is_runner(suite: Suite) -> bool:
    """Whether the exit code is the runner's, and not that of a command around it."""
    if suite.junit or suite.runner in node.RUNNERS:
        return False
    if suite.runner in ("unittest", "django"):
        return True
    return not suite.command or bool(end_of_start(suite.command, "pytest", "py.test"))


def _meaning(suite: Suite, code: int) -> str:
    if not _is_runner(suite):
        return ""
    return f" ({EXIT_CODES.get(code, OTHER_CODE)})"


def _explained(suite: Suite, cases: Sequence[Case], completed: Completed) -> bool:
    """Whether a green report and a red exit code have a reason that is not about any test."""
    if suite.junit or suite.runner in node.RUNNERS:
        return False
    if _is_runner(suite) and completed.exit_code == 5:
        return not any(case.outcome == "passed" for case in cases)
    return (completed.exit_code == 1 or not _is_runner(suite)) and bool(_COVERAGE.search(completed.output))


def _fault(suite: Suite, completed: Completed, has_report: bool, readable: bool) -> tuple[str, SuiteProblem]:
    """The sentence and what it is about."""
    tail = last_lines(completed.output)
    code = completed.exit_code
    if completed.cause is ExitCause.cpu and (test := completed.files.get(pytest.RUNNING, "")):
        return (
            f"{test} used more CPU than a test may (sandbox.test_cpu), in code that does not return.",
            SuiteProblem.timeout,
        )
    if completed.cause in (ExitCause.timeout, ExitCause.cpu):
        clock = "processor time" if completed.cause is ExitCause.cpu else "time"
        return (
            f"The tests ran out of {clock} after {completed.wall:.0f} seconds. The last output was:\n{tail}",
            SuiteProblem.timeout,
        )
    if completed.cause is ExitCause.memory:
        return f"The tests ran out of memory. The last output was:\n{tail}", SuiteProblem.no_results
    if completed.cause not in (ExitCause.ok, ExitCause.failed):
        return (
            f"The tests were stopped ({completed.cause}, exit code {code}). The last output was:\n{tail}",
            SuiteProblem.no_results,
        )
    if suite.runner == "pytest" and not has_report and _NO_PYTEST.search(completed.output):
        return "pytest is not installed for the interpreter that runs the tests.", SuiteProblem.no_pytest
    if suite.runner in node.RUNNERS and not has_report and node.found_no_tests(completed.output):
        return "No tests were collected.", SuiteProblem.no_tests
    if code == NOT_FOUND and suite.command and not has_report:
        return f"{_absent(suite)} The last output was:\n{tail}", SuiteProblem.no_results
    if (code == 5 and _is_runner(suite)) or (readable and code == 0):
        return "No tests were collected.", SuiteProblem.no_tests
    if has_report:
        what = "The report names no test" if readable else "The report is not JUnit XML"
    else:
        what = "The run left no report"
    what = f"{what}; the exit code is {code}{_meaning(suite, code)}."
    return f"{what} {_hint(suite, completed)}The last output was:\n{tail}", SuiteProblem.no_results


def _absent(suite: Suite) -> str:
    """What a shell's `not found` is about, and what to do."""
    program = suite.command[0]
    if suite.runner in node.RUNNERS:
        return f"{program} is not installed where the tests run. Install what the project needs: npm ci."
    if program in ("make", "sh", "bash"):
        return f"{program}, or a program that it starts, is not installed where the tests run."
    return (
        f"{program} is not installed where the tests run. Install it in the project's environment (pip install "
        f"{program}), name an environment that has it with --python, or start the tests without it: --test-cmd pytest."
    )


def _hint(suite: Suite, completed: Completed) -> str:
    """What to do about it, as far as it can be said."""
    if suite.junit:
        return f"Does the command write JUnit XML to {suite.junit}? A report from before the run does not count. "
    if suite.runner == "unittest" and suite.command:
        return "Results per test need the command `python -m unittest ...`, or --junit PATH. "
    if suite.runner == "django" and suite.command and django.parse_command(suite.command) is None:
        return "Results per test need the command `python manage.py test ...`, or --junit PATH. "
    if suite.runner == "pytest" and not _is_runner(suite):
        return (
            "Results per test need a command that starts pytest, or --junit PATH with what it writes. "
            "The exit code alone proves nothing about any test. "
        )
    if suite.runner == "pytest" and completed.exit_code in (0, 1):
        return "Does the command start pytest? "
    return ""


def last_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return clip("\n".join(lines[-LAST_LINES:]), LAST_SIZE) or "(nothing)"
