"""Find out how the failing tests of the head end on the base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from redstart.app.verify.revisions import Revisions
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.report import Case, Outcome
from redstart.core.run import RunSpec
from redstart.core.triage import BaseResult
from redstart.toolkit.honesty.changes.suite_results import SuiteResults
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.suites.problems.environment import EnvironmentProblem
from redstart.toolkit.suites.problems.remedies import BROKEN_TEST
from redstart.toolkit.suites.problems.run_problems import SuiteProblem

_RESULTS = {Outcome.passed: BaseResult.passed, Outcome.skipped: BaseResult.skipped}


class BaseResults(NamedTuple):
    results: Mapping[str, BaseResult]
    problem: str = ""
    """Why the tests of the base do not run; empty if they do."""


async def find_base_results(runs: SuiteRuns, revisions: Revisions, spec: RunSpec, ids: Sequence[str]) -> BaseResults:
    """Run the files of the tests on the base. A test that does not exist there is absent."""
    if not ids:
        return BaseResults({})
    base, head = revisions.base.snapshot, revisions.head.snapshot
    if base.tree == head.tree:
        return BaseResults(dict.fromkeys(ids, BaseResult.failed))
    names = runs.create_test_view(base).select_existing(ids)
    if not names:
        return BaseResults(dict.fromkeys(ids, BaseResult.absent))
    suite_run = await runs.run_suite(f"the failing tests on {revisions.base.version.name}", base, spec, names)
    if suite_run.problem not in (SuiteProblem.none, SuiteProblem.no_tests):
        problem = runs.explain_missing_results(base, suite_run)
        reason = problem.words if problem else next(iter(suite_run.report.fault.splitlines()), "")
        return BaseResults(dict.fromkeys(ids, BaseResult.not_run), clip(reason, 300))
    return BaseResults({id_: find_result(id_, suite_run.cases) for id_ in ids})


def find_result(id_: str, cases: Sequence[Case]) -> BaseResult:
    """Find the result of a test, or of a test file that could not be loaded on the head."""
    case = SuiteResults(cases).find(id_)
    if case is not None:
        return BaseResult.failed if case.is_red else _RESULTS[case.outcome]
    return BaseResult.passed if find_passing_targets([id_], cases) else BaseResult.absent


def find_lacks(runs: SuiteRuns, tree: Snapshot, cases: Iterable[Case]) -> dict[str, EnvironmentProblem]:
    """Find the failing tests that lack something of this machine. A mistake in a test file is no such lack."""
    problems = runs.find_environment_problems(tree, cases)
    return {id_: problem for id_, problem in problems.items() if problem.kind != BROKEN_TEST}
