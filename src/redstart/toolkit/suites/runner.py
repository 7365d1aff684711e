"""The door of the kit: what to run for a suite, and what its run says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.errors import ConfigError
from redstart.core.noun import clip
from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, ExitCause
from redstart.toolkit.suites import pytest, unittest
from redstart.toolkit.suites.junit import read_cases
from redstart.toolkit.suites.request import JUNIT, Request
from redstart.toolkit.suites.sentinel import read_sentinel

__all__ = ["EXIT_CODES", "Parsed", "contradiction", "last_lines", "read", "read_sentinel", "request"]

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
    kind: str = ""
    """The same in a word: `no_tests`, `no_pytest`, `no_results` or `timeout`."""


def request(
    suite: Suite, environment: Environment, ids: Sequence[str] = (), *, sentinel: Sequence[str] = ()
) -> Request:
    """What runs the suite, or at least the tests `ids` of it, and leaves where the packages `sentinel` come from.

    The latter is left only by a command that is the runner itself, not by one that starts it, such as `make test`.
    Raises `ConfigError` for a runner that is not known.
    """
    if suite.runner == "pytest":
        return pytest.command(suite, environment, ids=ids, sentinel=sentinel)
    if suite.runner == "unittest":
        return unittest.command(suite, environment, ids=ids, sentinel=sentinel)
    raise ConfigError(f"There is no test runner {suite.runner}.", remedy="Use pytest or unittest.")


def read(suite: Suite, completed: Completed) -> Parsed:
    """The results per test, or why there are none."""
    xml = completed.files.get(JUNIT)
    cases = None if xml is None else read_cases(xml, suite.runner)
    if cases:
        return Parsed(cases)
    return Parsed([], *_fault(suite, completed, xml is not None, cases is not None))


def contradiction(cases: Sequence[Case], completed: Completed) -> str:
    """A sentence where exit code and report do not agree on red or green; empty where they do or there is none."""
    if not cases:
        return ""
    red = sum(case.red for case in cases)
    code = completed.exit_code
    if red and completed.cause is ExitCause.ok:
        return f"The report has {red} red tests, but the exit code is 0 (all passed)."
    if red or completed.cause is ExitCause.ok or _explained(cases, completed):
        return ""
    if completed.cause is not ExitCause.failed:
        return f"The report has no red test, but the run was ended ({completed.cause}, exit code {code})."
    meaning = EXIT_CODES.get(code, "not a code of the runner's")
    return f"The report has no red test, but the exit code is {code} ({meaning})."


def _explained(cases: Sequence[Case], completed: Completed) -> bool:
    """Whether a green report and a red exit code have a reason that is not about any test."""
    if completed.exit_code == 5:
        return not any(case.outcome == "passed" for case in cases)
    return completed.exit_code == 1 and bool(_COVERAGE.search(completed.output))


def _fault(suite: Suite, completed: Completed, has_report: bool, readable: bool) -> tuple[str, str]:
    """The sentence and the word."""
    tail = last_lines(completed.output)
    code = completed.exit_code
    if completed.cause in (ExitCause.timeout, ExitCause.cpu):
        clock = "processor time" if completed.cause is ExitCause.cpu else "time"
        return (
            f"The tests ran out of {clock} after {completed.wall:.0f} seconds. The last output was:\n{tail}",
            "timeout",
        )
    if completed.cause is ExitCause.memory:
        return f"The tests ran out of memory. The last output was:\n{tail}", "no_results"
    if completed.cause in (ExitCause.signal, ExitCause.file_size):
        return f"The tests were ended ({completed.cause}, exit code {code}). The last output was:\n{tail}", "no_results"
    if suite.runner == "pytest" and not has_report and _NO_PYTEST.search(completed.output):
        return "pytest is not installed for the interpreter that runs the tests.", "no_pytest"
    if code == 5 or (readable and code == 0):
        return "No tests were collected.", "no_tests"
    meaning = EXIT_CODES.get(code, "not a code of the runner's")
    if has_report:
        what = "The report names no test" if readable else "The report is not JUnit XML"
    else:
        what = "The run left no report"
    return (
        f"{what}; the exit code is {code} ({meaning}). {_hint(suite, completed)}The last output was:\n{tail}",
        "no_results",
    )


def _hint(suite: Suite, completed: Completed) -> str:
    if suite.runner == "unittest" and suite.command:
        return "Results per test need the command `python -m unittest ...`. "
    if suite.runner == "pytest" and completed.exit_code in (0, 1):
        return "Does the repo's configuration turn off pytest's plugin junitxml, or the command not start pytest? "
    return ""


def last_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return clip("\n".join(lines[-LAST_LINES:]), LAST_SIZE) or "(nothing)"
