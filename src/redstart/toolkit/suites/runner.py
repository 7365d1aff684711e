"""Entry points of the package: build the request for a suite and read the results of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.errors import ConfigError
from redstart.core.frozen import clip, format_count
from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import PINNED, Completed, Environment, ExitCause, Variation
from redstart.toolkit.languages.protocol import RunFault, SuiteRunner
from redstart.toolkit.languages.registry import find_runner_language, list_runner_names
from redstart.toolkit.suites import junit_runner
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.reading.junit import read_foreign
from redstart.toolkit.suites.request import RUNNING, SuiteRequest

__all__ = [
    "EXIT_CODES",
    "ParsedRun",
    "build_replacement_request",
    "can_select_tests",
    "find_contradiction",
    "get_last_lines",
    "get_suite_runner",
    "read",
    "request",
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
"""pytest's exit codes. Our unittest runner uses 0, 1 and 5 with the same meaning."""

COMMAND_NOT_FOUND = 127
OTHER_CODE = "not a code of the runner's"

LAST_LINES = 12
LAST_SIZE = 1500


class ParsedRun(NamedTuple):
    cases: list[Case]
    fault: str = ""
    """A sentence that explains why there are no results per test. Empty if there are."""
    kind: SuiteProblem = SuiteProblem.none


def request(
    suite: Suite,
    environment: Environment,
    ids: Sequence[str] = (),
    *,
    sentinel: Sequence[str] = (),
    variation: Variation = PINNED,
    test_cpu: int = 0,
) -> SuiteRequest:
    """Build the request that runs the suite, or at least the tests `ids`, and records where `sentinel` packages lie.

    pytest and our unittest runner record that; a foreign runner does not. Raises `ConfigError` for a runner that
    Redstart does not know.
    """
    if suite.junit:
        return junit_runner.build_request(suite, environment, variation=variation)
    if runner := get_suite_runner(suite):
        return runner.build_request(
            suite, environment, ids=ids, sentinel=sentinel, variation=variation, test_cpu=test_cpu
        )
    *most, last = list_runner_names()
    remedy = f"use {', '.join(most)} or {last}, or give the path of your command's report with --junit"
    raise ConfigError(f"unknown test runner: {suite.runner}", remedy=remedy)


def get_suite_runner(suite: Suite) -> SuiteRunner | None:
    """Find what starts the suite's runner. None if only its command's report is read, or the runner is unknown."""
    language = None if suite.junit else find_runner_language(suite.runner)
    return language.runner if language else None


def build_replacement_request(
    suite: Suite, environment: Environment, completed: Completed, variation: Variation = PINNED
) -> SuiteRequest | None:
    """Build the request that replaces a run that did not reach its tests because of us. None for any other run."""
    runner = get_suite_runner(suite)
    return runner.build_retry_request(suite, environment, completed, variation) if runner else None


def can_select_tests(suite: Suite) -> bool:
    """Whether some tests can run without the others. If not, each run executes the whole command."""
    runner = get_suite_runner(suite)
    return runner is not None and runner.can_select_tests(suite)


def read(suite: Suite, completed: Completed) -> ParsedRun:
    """Read the results per test, or the reason that there are none."""
    if suite.junit:
        reports = junit_runner.read_reports(completed)
        texts = list(reports.reports.values())
        cases = read_foreign(reports.reports) if texts else None
        if cases and not reports.whole:
            return ParsedRun([], "The reports are too large or too many to be read whole.", SuiteProblem.no_results)
        return _create_parsed_run(suite, completed, cases, has_report=bool(texts))
    runner = get_suite_runner(suite)
    return _create_parsed_run(suite, completed, *(runner.read(suite, completed) if runner else (None, False)))


def _create_parsed_run(suite: Suite, completed: Completed, cases: list[Case] | None, has_report: bool) -> ParsedRun:
    if cases:
        return ParsedRun(cases if suite.detailed else [_without_output(case) for case in cases])
    return ParsedRun([], *_find_fault(suite, completed, has_report, cases is not None))


def _without_output(case: Case) -> Case:
    return case.model_copy(update={"stdout": "", "stderr": ""}) if case.stdout or case.stderr else case


def find_contradiction(suite: Suite, cases: Sequence[Case], completed: Completed) -> str:
    """Describe how exit code and report disagree on pass or fail. Empty if they agree or there is no report."""
    if not cases:
        return ""
    failing_count, runner = sum(case.is_red for case in cases), get_suite_runner(suite)
    code = completed.exit_code
    if failing_count and completed.cause is ExitCause.ok:
        return f"The report lists {format_count(failing_count, 'failing test')}, but the exit code is 0 (all passed)."
    if (
        failing_count
        or completed.cause is ExitCause.ok
        or (runner and runner.is_exit_code_explained(suite, cases, completed))
    ):
        return ""
    if completed.cause is not ExitCause.failed:
        return f"The report lists no failing test, but the run was stopped ({completed.cause}, exit code {code})."
    return f"The report lists no failing test, but the exit code is {code}{_describe_exit_code(suite, code)}."


def _describe_exit_code(suite: Suite, code: int) -> str:
    runner = get_suite_runner(suite)
    return f" ({EXIT_CODES.get(code, OTHER_CODE)})" if runner and runner.has_runner_exit_code(suite) else ""


def _find_fault(suite: Suite, completed: Completed, has_report: bool, is_readable: bool) -> RunFault:
    runner = get_suite_runner(suite)
    tail = get_last_lines(completed.output)
    code = completed.exit_code
    if completed.cause is ExitCause.cpu and (test := completed.files.get(RUNNING, "")):
        sentence = f"{test} used more CPU than a test may (sandbox.test_cpu), in code that does not return."
        return RunFault(sentence, SuiteProblem.timeout)
    if completed.cause in (ExitCause.timeout, ExitCause.cpu):
        clock = "processor time" if completed.cause is ExitCause.cpu else "time"
        return RunFault(
            f"The tests ran out of {clock} after {completed.wall:.0f} seconds. The last output was:\n{tail}",
            SuiteProblem.timeout,
        )
    if completed.cause is ExitCause.memory:
        return RunFault(f"The tests ran out of memory. The last output was:\n{tail}", SuiteProblem.no_results)
    if completed.cause not in (ExitCause.ok, ExitCause.failed):
        return RunFault(
            f"The tests were stopped ({completed.cause}, exit code {code}). The last output was:\n{tail}",
            SuiteProblem.no_results,
        )
    if runner and not has_report and (fault := runner.find_run_fault(suite, completed)):
        return fault
    if code == COMMAND_NOT_FOUND and suite.command and not has_report:
        return RunFault(f"{_explain_missing_program(suite)} The last output was:\n{tail}", SuiteProblem.no_results)
    if (code == 5 and runner and runner.has_runner_exit_code(suite)) or (is_readable and code == 0):
        return RunFault("No tests were collected.", SuiteProblem.no_tests)
    if has_report:
        summary = "The report names no test" if is_readable else "The report is not JUnit XML"
    else:
        summary = "The run left no report"
    summary = f"{summary}; the exit code is {code}{_describe_exit_code(suite, code)}."
    return RunFault(
        f"{summary} {_suggest_remedy(suite, completed)}The last output was:\n{tail}", SuiteProblem.no_results
    )


def _explain_missing_program(suite: Suite) -> str:
    """Explain what a shell's `not found` refers to and what to do."""
    language = find_runner_language(suite.runner)
    return ((language and language.runner) or SuiteRunner()).explain_missing_program(suite)


def _suggest_remedy(suite: Suite, completed: Completed) -> str:
    """Suggest what to do, as far as possible."""
    if suite.junit:
        return f"Does the command write JUnit XML to {suite.junit}? A report from before the run does not count. "
    runner = get_suite_runner(suite)
    return runner.suggest_remedy(suite, completed) if runner else ""


def get_last_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return clip("\n".join(lines[-LAST_LINES:]), LAST_SIZE) or "(nothing)"
