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


def completed(code: int, cause: ExitCause | None = None, output: str = "", junit: str | None = None) -> Completed:
    files = {} if junit is None else {"junit.xml": junit}
    cause = cause or (ExitCause.failed if code else ExitCause.ok)
    return Completed(exit_code=code, cause=cause, output=output, files=files, wall=12.0)


def test_an_unknown_runner_is_refused(environment: Environment) -> None:
    with pytest.raises(ConfigError, match="unknown test runner: nose"):
        runner.request(Suite(runner="nose"), environment)


@pytest.mark.parametrize(
    ("done", "kind", "words"),
    [
        (completed(137, ExitCause.timeout, "collecting ..."), "timeout", "after 12 seconds"),
        (completed(152, ExitCause.cpu), "timeout", "processor time"),
        (completed(137, ExitCause.memory), "no_results", "memory"),
        (
            completed(139, ExitCause.signal, "Fatal Python error: Segmentation fault"),
            "no_results",
            "Segmentation fault",
        ),
        (completed(1, output="/v/bin/python: No module named pytest\n"), "no_pytest", "not installed"),
        (completed(1, output="ModuleNotFoundError: No module named 'pytest'\n"), "no_pytest", "not installed"),
        (completed(127, output="sh: 1: pytest: not found\n"), "no_pytest", "not installed"),
        (completed(127, output="bash: line 1: pytest: command not found\n"), "no_pytest", "not installed"),
        (completed(1, output="No module named pytest_django\n"), "no_results", "some tests failed"),
        (completed(5, junit="<testsuites/>"), "no_tests", "No tests were collected"),
        (completed(0, junit="<testsuites/>"), "no_tests", "No tests were collected"),
        (completed(0, output="fine"), "no_results", "left no report"),
        (completed(3, output="INTERNALERROR> boom"), "no_results", "3 (internal error)"),
        (completed(4, output="usage: bad", junit="<testsuites/>"), "no_results", "names no test"),
        (completed(1, junit="<html/>"), "no_results", "not JUnit XML"),
        (completed(77), "no_results", "not a code of the runner's"),
    ],
)
def test_why_there_are_no_results(done: Completed, kind: str, words: str) -> None:
    parsed = runner.read(SUITE, done)
    assert (parsed.cases, parsed.kind) == ([], kind)
    assert words in parsed.fault


def test_the_last_lines_are_few_and_short() -> None:
    tail = runner.last_lines("\n\n".join("x" * 300 for _ in range(50)))
    assert len(tail) <= runner.LAST_SIZE
    assert runner.last_lines("a\n\nb\n") == "a\nb"


@pytest.mark.parametrize(
    ("cases", "done", "words"),
    [
        (GREEN, completed(0), ""),
        (RED, completed(1), ""),
        (RED, completed(2), ""),
        (RED, completed(0), "1 failing test"),
        (GREEN, completed(1), "1 (some tests failed)"),
        (GREEN, completed(2), "2 (interrupted)"),
        (GREEN, completed(6), "6 (too many warnings)"),
        (GREEN, completed(9), "9 (not a code of the runner's)"),
        (GREEN, completed(5), "5 (no tests were collected)"),
        (SKIPPED, completed(5), ""),
        (GREEN, completed(137, ExitCause.timeout), "timeout"),
        (GREEN, completed(1, output="\nFAIL Required test coverage of 90% not reached. Total: 50%\n"), ""),
        (GREEN, completed(3, output="\nFAIL Required test coverage of 90% not reached. Total: 50%\n"), "3 (internal"),
        ([], completed(1), ""),
    ],
)
def test_contradictions(cases: list[Case], done: Completed, words: str) -> None:
    said = runner.contradiction(SUITE, cases, done)
    assert words in said
    assert bool(said) == bool(words)
