from __future__ import annotations

import pytest

from redstart.core.errors import ConfigError
from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, ExitCause
from redstart.toolkit.suites import runner

SUITE = Suite(runner="pytest")
GREEN = [Case(id="a", outcome=Outcome.passed)]
RED = [*GREEN, Case(id="b", outcome=Outcome.error)]
SKIPPED = [Case(id="a", outcome=Outcome.skipped)]


def create_completed(
    code: int, cause: ExitCause | None = None, output: str = "", junit: str | None = None
) -> Completed:
    files = {} if junit is None else {"junit.xml": junit}
    cause = cause or (ExitCause.failed if code else ExitCause.ok)
    return Completed(exit_code=code, cause=cause, output=output, files=files, wall=12.0)


def test_unknown_runner_is_refused(environment: Environment) -> None:
    with pytest.raises(ConfigError, match="unknown test runner: nose"):
        runner.request(Suite(runner="nose"), environment)


@pytest.mark.parametrize(
    ("result", "kind", "phrase"),
    [
        (create_completed(137, ExitCause.timeout, "collecting ..."), "timeout", "after 12 seconds"),
        (create_completed(152, ExitCause.cpu), "timeout", "processor time"),
        (create_completed(137, ExitCause.memory), "no_results", "memory"),
        (
            create_completed(139, ExitCause.signal, "Fatal Python error: Segmentation fault"),
            "no_results",
            "Segmentation fault",
        ),
        (create_completed(1, output="/v/bin/python: No module named pytest\n"), "no_pytest", "not installed"),
        (create_completed(1, output="ModuleNotFoundError: No module named 'pytest'\n"), "no_pytest", "not installed"),
        (create_completed(127, output="sh: 1: pytest: not found\n"), "no_pytest", "not installed"),
        (create_completed(127, output="bash: line 1: pytest: command not found\n"), "no_pytest", "not installed"),
        (create_completed(1, output="No module named pytest_django\n"), "no_results", "some tests failed"),
        (create_completed(5, junit="<testsuites/>"), "no_tests", "No tests were collected"),
        (create_completed(0, junit="<testsuites/>"), "no_tests", "No tests were collected"),
        (create_completed(0, output="fine"), "no_results", "left no report"),
        (create_completed(3, output="INTERNALERROR> boom"), "no_results", "3 (internal error)"),
        (create_completed(4, output="usage: bad", junit="<testsuites/>"), "no_results", "names no test"),
        (create_completed(1, junit="<html/>"), "no_results", "not JUnit XML"),
        (create_completed(77), "no_results", "not a code of the runner's"),
    ],
)
def test_missing_results_are_explained(result: Completed, kind: str, phrase: str) -> None:
    parsed = runner.read(SUITE, result)
    assert (parsed.cases, parsed.kind) == ([], kind)
    assert phrase in parsed.fault


def test_last_lines_are_limited() -> None:
    tail = runner.get_last_lines("\n\n".join("x" * 300 for _ in range(50)))
    assert len(tail) <= runner.LAST_SIZE
    assert runner.get_last_lines("a\n\nb\n") == "a\nb"


@pytest.mark.parametrize(
    ("cases", "result", "phrase"),
    [
        (GREEN, create_completed(0), ""),
        (RED, create_completed(1), ""),
        (RED, create_completed(2), ""),
        (RED, create_completed(0), "1 failing test"),
        (GREEN, create_completed(1), "1 (some tests failed)"),
        (GREEN, create_completed(2), "2 (interrupted)"),
        (GREEN, create_completed(6), "6 (too many warnings)"),
        (GREEN, create_completed(9), "9 (not a code of the runner's)"),
        (GREEN, create_completed(5), "5 (no tests were collected)"),
        (SKIPPED, create_completed(5), ""),
        (GREEN, create_completed(137, ExitCause.timeout), "timeout"),
        (GREEN, create_completed(1, output="\nFAIL Required test coverage of 90% not reached. Total: 50%\n"), ""),
        (
            GREEN,
            create_completed(3, output="\nFAIL Required test coverage of 90% not reached. Total: 50%\n"),
            "3 (internal",
        ),
        ([], create_completed(1), ""),
    ],
)
def test_contradictions_are_reported(cases: list[Case], result: Completed, phrase: str) -> None:
    message = runner.find_contradiction(SUITE, cases, result)
    assert phrase in message
    assert bool(message) == bool(phrase)
