"""Find out whose fault each failing test is: run the tests of the head, and those that fail on the base."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from redstart.app.exit_codes import triage_exit_code
from redstart.app.triage.base_results import find_base_results, find_lacks
from redstart.app.triage.first_bad import find_first_bad
from redstart.app.triage.flakes import RepeatedTest, repeat_tests
from redstart.app.triage.reasons import TriageEnding, describe_end, explain_missing_results
from redstart.app.triage.reported_tests import ReportedTests, read_reported_tests
from redstart.app.verify.changed_files import sort_changed_files
from redstart.app.verify.revisions import RevisionRequest, Revisions, resolve_revisions
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.app.verify.suite_specs import SuiteOptions, SuiteSpecs, choose_changed_suite, create_specs
from redstart.app.wire import AppContext
from redstart.app.workspace import MayLend
from redstart.core.events import Progress
from redstart.core.frozen import clip, format_count
from redstart.core.report import FIRST, Case, Outcome, OutcomeCounts
from redstart.core.triage import BaseResult, FailingTest, FailureOrigin, Triage, TriageEnd
from redstart.engines.progress import StepWatch
from redstart.toolkit.base.git import require_git
from redstart.toolkit.honesty.changes.claims import quote_failure
from redstart.toolkit.honesty.changes.suite_results import SuiteResults
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.suites.detection.command import require_results
from redstart.toolkit.suites.detection.history import find_work_root
from redstart.toolkit.suites.problems.environment import EnvironmentProblem

STEP = "triage"


class TriageRequest(NamedTuple):
    """The user's options for a triage, besides the folder."""

    revisions: RevisionRequest = RevisionRequest()
    suite: SuiteOptions = SuiteOptions()
    junit: Path | None = None
    """The JUnit file of an earlier run: only the tests that failed there run."""
    log: Path | None = None
    """The log of an earlier run, for the same."""
    bisect: bool = False
    """Whether to find the first bad commit of each test that is the user's or already red."""


async def triage(
    app: AppContext,
    path: Path,
    request: TriageRequest,
    *,
    report: Callable[[Progress], None],
    may_lend: MayLend | None = None,
) -> Triage:
    """Find out whose fault each failing test of the repo around `path` is. The repo is only read.

    `report` is called with the progress, and `may_lend` decides as for `create_fix_run`. Raises `ConfigError` if a
    revision or the tests cannot be determined, and what the sandbox raises.
    """
    require_git()
    require_results(request.suite.command, request.suite.junit)
    root = find_work_root(path)
    revisions = resolve_revisions(app.trees, root, request.revisions)
    files = sort_changed_files(app.trees, revisions.base.snapshot, revisions.head.snapshot)
    choose = partial(choose_changed_suite, "triage", files)
    specs = create_specs(app, path, request.suite, revisions, choose, may_lend)
    runs = SuiteRuns(app, specs.new, StepWatch(Progress("", 0, STEP), report))
    view = runs.create_test_view(revisions.head.snapshot)
    reported = read_reported_tests(request.junit, request.log, specs.new.suite, view)
    result = await _TriageRunner(runs, revisions, specs, root.name).run(reported)
    if not request.bisect:
        return result
    found = await find_first_bad(runs, app.trees, root, revisions, specs.new, result.tests)
    return result.model_copy(update=found._asdict())


class _TriageRunner:
    def __init__(self, runs: SuiteRuns, revisions: Revisions, specs: SuiteSpecs, repo: str) -> None:
        self._runs, self._revisions, self._specs, self._repo = runs, revisions, specs, repo
        self._head = revisions.head.snapshot

    async def run(self, reported: ReportedTests | None) -> Triage:
        """Triage the failing tests of the head, or those that failed in another run."""
        if reported and not reported.ids:
            return self._finish(TriageEnding(TriageEnd.green, f"{reported.name} lists no failing test"))
        names = self._runs.create_test_view(self._head).select_existing(reported.ids) if reported else []
        if reported and not names:
            reason = f"no test that failed in {reported.name} exists here"
            return self._finish(TriageEnding(TriageEnd.no_tests, reason, "name the same code with --head"))
        first_run = await self._runs.run_suite("the tests", self._head, self._specs.new, names)
        if ending := explain_missing_results(self._runs, self._head, first_run):
            return self._finish(ending)
        cases = {case.id: case for case in first_run.cases if case.is_red}
        if reported:
            cases = _select_reported(reported, first_run.cases)
        base_name = self._revisions.base.version.name
        base_problem, tests = await self._judge_tests(cases, names)
        notes = _list_missing(reported, cases) if reported else ()
        counts = OutcomeCounts.from_cases(first_run.cases)
        return self._finish(describe_end(tests, base_name, base_problem), tests, counts, notes)

    async def _judge_tests(self, cases: Mapping[str, Case], names: Sequence[str]) -> tuple[str, list[FailingTest]]:
        """Judge the tests. `names` is what ran; empty for the whole suite. Return also why the base does not run."""
        problems = find_lacks(self._runs, self._head, cases.values())
        may_be_flaky = {id_: case for id_, case in cases.items() if id_ not in problems}
        repeated = await repeat_tests(self._runs, self._head, self._specs.new, may_be_flaky, names)
        steady = [id_ for id_ in cases if id_ not in repeated or repeated[id_].failures == repeated[id_].runs]
        base = await find_base_results(self._runs, self._revisions, self._specs.old, steady)
        return base.problem, [
            _judge(case, repeated.get(id_), base.results.get(id_), problems.get(id_)) for id_, case in cases.items()
        ]

    def _finish(
        self,
        ending: TriageEnding,
        tests: Sequence[FailingTest] = (),
        counts: OutcomeCounts | None = None,
        notes: Sequence[str] = (),
    ) -> Triage:
        return Triage(
            redstart=version("redstart"),
            repo=self._repo,
            end=ending.end,
            exit_code=triage_exit_code(ending.end),
            reason=ending.reason,
            remedy=ending.remedy,
            base=self._revisions.base.version,
            head=self._revisions.head.version,
            counts=counts or OutcomeCounts(),
            tests=tuple(sorted(tests, key=lambda test: (list(FailureOrigin).index(test.origin), test.test))),
            notes=tuple(notes),
        )


_ORIGINS = {BaseResult.failed: FailureOrigin.already_red, BaseResult.not_run: FailureOrigin.undecided}


def _judge(
    case: Case, repeated: RepeatedTest | None, base: BaseResult | None, problem: EnvironmentProblem | None
) -> FailingTest:
    """Judge a failing test by what it lacks, by its reruns and by its result on the base."""
    failing = FailingTest(test=case.id, origin=FailureOrigin.undecided, failure=quote_failure(case))
    if problem is not None:
        lack = {"origin": FailureOrigin.environment, "note": problem.words, "remedy": problem.remedy}
        failing = failing.model_copy(update=lack)
    elif base is not None:
        failing = failing.model_copy(update={"origin": _ORIGINS.get(base, FailureOrigin.yours)})
    if repeated is not None:
        failing = failing.model_copy(update=repeated._asdict())
    if repeated is not None and repeated.failures < repeated.runs:
        origin = FailureOrigin.flaky if repeated.failures else FailureOrigin.not_reproduced
        return failing.model_copy(update={"origin": origin})
    return failing.model_copy(update={"base": base or BaseResult.not_run})


def _select_reported(reported: ReportedTests, cases: Sequence[Case]) -> dict[str, Case]:
    """Return how the tests end here that failed in another run, without those that do not exist here."""
    results, passing = SuiteResults(cases), find_passing_targets(reported.ids, cases)
    found = {id_: results.find(id_) for id_ in reported.ids}
    # A file that could not be loaded in the other run has no result of its own here.
    found |= {id_: Case(id=id_, outcome=Outcome.passed) for id_ in passing}
    return {id_: case.model_copy(update={"id": id_}) for id_, case in found.items() if case is not None}


def _list_missing(reported: ReportedTests, cases: Collection[str]) -> list[str]:
    missing = [id_ for id_ in reported.ids if id_ not in cases]
    if not missing:
        return []
    names = ", ".join(missing[:FIRST]) + (", ..." if len(missing) > FIRST else "")
    return [f"{format_count(len(missing), 'test')} of {reported.name} did not run here: {clip(names, 600)}"]
