"""The result of a triage in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.change import Snapshot
from redstart.core.frozen import format_count
from redstart.core.triage import BaseResult, FailingTest, FailureOrigin, TriageEnd
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.problems.run_problems import SuiteProblem


class TriageEnding(NamedTuple):
    end: TriageEnd
    reason: str
    """One sentence, without its full stop."""
    remedy: str = ""


def explain_missing_results(runs: SuiteRuns, head: Snapshot, suite_run: SuiteRun) -> TriageEnding | None:
    """Return how the triage ends if the head has no results per test; None if it has."""
    if suite_run.misplaced:
        return TriageEnding(TriageEnd.environment, "the tests do not import the code of this repo", suite_run.misplaced)
    if suite_run.problem is SuiteProblem.no_tests:
        return TriageEnding(TriageEnd.no_tests, "no tests were found", "name their command with --test-cmd")
    fault = suite_run.report.fault.strip()
    if suite_run.problem:
        problem = runs.explain_missing_results(head, suite_run)
        reason = f"the tests do not run{f': {problem.words}' if problem else ''}"
        return TriageEnding(TriageEnd.environment, reason, problem.remedy if problem else fault)
    if suite_run.unexplained and not suite_run.report.counts.red:
        return TriageEnding(TriageEnd.environment, f"the result of the tests is unclear: {suite_run.unexplained}")
    return None


def describe_end(tests: Sequence[FailingTest], base: str, base_problem: str) -> TriageEnding:
    """Decide how a triage of these failing tests ends, and describe why. `base` is the name of the base."""
    if not tests:
        return TriageEnding(TriageEnd.green, "no test fails")
    groups = {origin: [test for test in tests if test.origin is origin] for origin in FailureOrigin}
    yours = groups[FailureOrigin.yours]
    total = format_count(len(tests), "failing test")
    if yours:
        new = [test for test in yours if test.base is BaseResult.absent]
        counts = _join_counts({f"green on {base}": len(yours) - len(new), "new": len(new)})
        are = "is" if len(yours) == 1 else "are"
        return TriageEnding(TriageEnd.yours, f"{len(yours)} of {total} {are} yours: {counts}")
    if groups[FailureOrigin.undecided]:
        remedy = "choose a --base whose tests run here"
        return TriageEnding(TriageEnd.environment, f"the tests do not run on {base}: {base_problem}", remedy)
    lacking = [test for test in groups[FailureOrigin.environment] if test.base is not BaseResult.failed]
    if lacking:
        verb = "lacks" if len(lacking) == 1 else "lack"
        reason = f"{format_count(len(lacking), 'test')} newly {verb} something of this machine"
        return TriageEnding(TriageEnd.environment, reason, lacking[0].remedy)
    names = {
        f"already red on {base}": FailureOrigin.already_red,
        "flaky": FailureOrigin.flaky,
        "of the environment": FailureOrigin.environment,
        "not reproduced here": FailureOrigin.not_reproduced,
    }
    counts = _join_counts({name: len(groups[origin]) for name, origin in names.items()})
    subject = "the failing test is not yours" if len(tests) == 1 else f"none of {total} is yours"
    return TriageEnding(TriageEnd.not_yours, f"{subject}: {counts}")


def _join_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
