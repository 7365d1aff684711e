"""Find out whose fault each failing test is: run the tests of the head, and those that fail on the base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from redstart.app.exit_codes import triage_exit_code
from redstart.app.triage.base_results import find_base_results
from redstart.app.triage.reasons import TriageEnding, describe_end, explain_missing_results
from redstart.app.verify.changed_files import sort_changed_files
from redstart.app.verify.revisions import RevisionRequest, Revisions, resolve_revisions
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.app.verify.suite_specs import SuiteOptions, SuiteSpecs, choose_changed_suite, create_specs
from redstart.app.wire import AppContext
from redstart.app.workspace import MayLend
from redstart.core.events import Progress
from redstart.core.report import Case, OutcomeCounts
from redstart.core.triage import BaseResult, FailingTest, FailureOrigin, Triage
from redstart.engines.progress import StepWatch
from redstart.toolkit.base.git import require_git
from redstart.toolkit.honesty.changes.claims import quote_failure
from redstart.toolkit.suites.detection.command import require_results
from redstart.toolkit.suites.detection.history import find_work_root
from redstart.toolkit.suites.problems.environment import EnvironmentProblem

STEP = "triage"


class TriageRequest(NamedTuple):
    """The user's options for a triage, besides the folder."""

    revisions: RevisionRequest = RevisionRequest()
    suite: SuiteOptions = SuiteOptions()


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
    return await _TriageRunner(runs, revisions, specs, root.name).run()


class _TriageRunner:
    def __init__(self, runs: SuiteRuns, revisions: Revisions, specs: SuiteSpecs, repo: str) -> None:
        self._runs, self._revisions, self._specs, self._repo = runs, revisions, specs, repo
        self._head = revisions.head.snapshot

    async def run(self) -> Triage:
        head_run = await self._runs.run_suite("the tests", self._head, self._specs.new)
        if ending := explain_missing_results(self._runs, self._head, head_run):
            return self._finish(ending)
        red = [case for case in head_run.cases if case.is_red]
        problems = self._runs.find_environment_problems(self._head, red)
        base = await find_base_results(self._runs, self._revisions, self._specs.old, [case.id for case in red])
        tests = [_judge(case, base.results[case.id], problems.get(case.id)) for case in red]
        ending = describe_end(tests, self._revisions.base.version.name, base.problem)
        return self._finish(ending, tests, OutcomeCounts.from_cases(head_run.cases))

    def _finish(
        self, ending: TriageEnding, tests: Sequence[FailingTest] = (), counts: OutcomeCounts | None = None
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
        )


_ORIGINS = {BaseResult.failed: FailureOrigin.already_red, BaseResult.not_run: FailureOrigin.undecided}


def _judge(case: Case, base: BaseResult, problem: EnvironmentProblem | None) -> FailingTest:
    """Judge a failing test by its result on the base, and by what it lacks."""
    failing = FailingTest(
        test=case.id, origin=_ORIGINS.get(base, FailureOrigin.yours), base=base, failure=quote_failure(case)
    )
    if problem is None:
        return failing
    lack = {"origin": FailureOrigin.environment, "note": problem.words, "remedy": problem.remedy}
    return failing.model_copy(update=lack)
