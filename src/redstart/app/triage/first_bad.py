"""Find the first bad commit of failing tests, by snapshots of the history. Nothing is checked out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.app.triage.base_results import find_lacks
from redstart.app.verify.revisions import WORKING_TREE, Revisions
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.frozen import clip
from redstart.core.report import Case
from redstart.core.run import RunSpec
from redstart.core.triage import BaseResult, Bisection, FailingTest, FailureOrigin, FirstBad, SkippedCommit
from redstart.toolkit.base.git import GitFailed, ask_git
from redstart.toolkit.honesty.changes.claims import quote_failure
from redstart.toolkit.honesty.changes.suite_results import SuiteResults
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.repo.bisection import BisectionSearch, CommitResult, FoundCommit, NextRun, OpenRange
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.suites.problems.run_problems import SuiteProblem


class BisectedTests(NamedTuple):
    tests: tuple[FailingTest, ...]
    bisection: Bisection


async def find_first_bad(
    runs: SuiteRuns, trees: GitTrees, root: Path, revisions: Revisions, spec: RunSpec, tests: Sequence[FailingTest]
) -> BisectedTests:
    """Find the first commit at which each test fails that is yours or already red.

    The line of commits follows first parents: to the base, from there to the head, and then the working tree. A test
    that does not exist at a commit does not fail there.
    """
    return await _HistoryBisector(runs, trees, root, revisions, spec).bisect(tests)


class _HistoryBisector:
    def __init__(self, runs: SuiteRuns, trees: GitTrees, root: Path, revisions: Revisions, spec: RunSpec) -> None:
        self._runs, self._trees, self._root, self._spec = runs, trees, root, spec
        base, head = revisions.base.version, revisions.head.version
        until_base = _list_commits(root, base.commit)
        self._commits = [*until_base, *_list_commits(root, f"{base.commit}..{head.commit or 'HEAD'}")]
        self._base = len(until_base) - 1
        is_committed = head.commit or _ask_git(root, "rev-parse", "HEAD^{tree}").strip() == head.tree
        # Uncommitted changes come after the last commit.
        self._end = len(self._commits) - bool(is_committed)
        self._suite_runs = 0
        self._skipped: dict[str, str] = {}

    async def bisect(self, tests: Sequence[FailingTest]) -> BisectedTests:
        ends = {
            FailureOrigin.yours: OpenRange(self._base, self._end),
            FailureOrigin.already_red: OpenRange(-1, self._base),
        }
        ranges = {test.test: ends[test.origin] for test in tests if test.origin in ends}
        search = BisectionSearch(ranges)
        new = [test.test for test in tests if test.origin is FailureOrigin.yours and test.base is BaseResult.absent]
        search.record(self._base, dict.fromkeys(new, CommitResult.absent))
        while step := search.choose_next():
            search.record(step.commit, await self._run_commit(step))
        bisected = tuple(
            test.model_copy(update={"first_bad": self._describe(search.get_found(test.test))})
            if test.test in ranges
            else test
            for test in tests
        )
        commits = max((range_.bad for range_ in ranges.values()), default=0) - min(
            (range_.good for range_ in ranges.values()), default=0
        )
        skipped = tuple(
            SkippedCommit(commit=commit, subject=_read_details(self._root, commit).subject, reason=reason)
            for commit, reason in self._skipped.items()
        )
        return BisectedTests(bisected, Bisection(commits=commits, suite_runs=self._suite_runs, skipped=skipped))

    async def _run_commit(self, step: NextRun) -> dict[str, CommitResult]:
        """Run the tests at a commit, as far as it has their files."""
        commit = self._commits[step.commit]
        try:
            tree = self._trees.take_commit(self._root, commit)
        except GitFailed:
            self._skipped[commit] = "its files are not in this clone"
            return dict.fromkeys(step.tests, CommitResult.untestable)
        names = self._runs.create_test_view(tree).select_existing(step.tests)
        if not names:
            return dict.fromkeys(step.tests, CommitResult.absent)
        self._suite_runs += 1
        suite_run = await self._runs.run_suite(f"commit {commit[:8]}", tree, self._spec, names)
        if suite_run.problem not in (SuiteProblem.none, SuiteProblem.no_tests):
            problem = self._runs.explain_missing_results(tree, suite_run)
            fault = next(iter(suite_run.report.fault.splitlines()), "")
            self._skipped[commit] = clip(problem.words if problem else fault, 200)
            return dict.fromkeys(step.tests, CommitResult.untestable)
        lacking = find_lacks(self._runs, tree, suite_run.cases)
        cases = SuiteResults(suite_run.cases)
        passing = find_passing_targets(step.tests, suite_run.cases)
        results = {
            id_: CommitResult.good if id_ in passing else _judge(id_, cases.find(id_), lacking) for id_ in step.tests
        }
        if CommitResult.untestable in results.values():
            blocked = next(id_ for id_, result in results.items() if result is CommitResult.untestable)
            case = cases.find(blocked)
            self._skipped[commit] = clip(f"{case.id}: {quote_failure(case)}" if case else "", 200)
        return results

    def _describe(self, found: FoundCommit) -> FirstBad:
        unknown = tuple(self._commits[index] for index in found.unknown)
        if found.commit == len(self._commits):
            return FirstBad(subject=WORKING_TREE, added=found.added, unknown=unknown)
        details = _read_details(self._root, self._commits[found.commit])
        return FirstBad(
            commit=self._commits[found.commit],
            subject=details.subject,
            author=details.author,
            date=details.date,
            added=found.added,
            unknown=unknown,
        )


def _judge(id_: str, case: Case | None, lacking: Collection[str]) -> CommitResult:
    """Judge how a test ends at a commit. It has no result if its file cannot be loaded, unless it is that file."""
    if case is None:
        return CommitResult.absent
    if not case.is_red:
        return CommitResult.good
    return CommitResult.untestable if case.id in lacking or case.id != id_ else CommitResult.bad


class _CommitDetails(NamedTuple):
    author: str
    date: str
    subject: str


def _read_details(root: Path, commit: str) -> _CommitDetails:
    fields = _ask_git(root, "log", "-1", "--no-show-signature", "--format=%an%x00%as%x00%s", commit, "--").split("\0")
    return (
        _CommitDetails(*(clip(field.strip(), 200) for field in fields[:3]))
        if len(fields) >= 3
        else _CommitDetails("", "", "")
    )


def _list_commits(root: Path, range_: str) -> list[str]:
    """List the commits of a range along first parents, oldest first."""
    return _ask_git(root, "rev-list", "--first-parent", "--reverse", range_, "--").split()


def _ask_git(root: Path, *arguments: str) -> str:
    return (ask_git(root, *arguments) or b"").decode("utf-8", "replace")
