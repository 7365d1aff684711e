"""Run the tests of both sides of a change on the code of both sides."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from redstart.app.verify.revisions import Revisions
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.report import FIRST, Case, OutcomeCounts
from redstart.core.run import RunSpec
from redstart.core.verification import FileRole, MatrixRun, SortedFile
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.honesty.changes.suite_results import ResultMatrix, SuiteResults
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.retrieval.affected_tests import find_affected_tests
from redstart.toolkit.suites.execute import SuiteRun

_TEST_ROLES = (FileRole.tests, FileRole.configuration)
CODE_ROLES = (FileRole.source, FileRole.generated)


class VerifiedChange(NamedTuple):
    """A change, with how the tests of each side run."""

    revisions: Revisions
    files: tuple[SortedFile, ...]
    old_spec: RunSpec
    new_spec: RunSpec

    @property
    def base(self) -> Snapshot:
        return self.revisions.base.snapshot

    @property
    def head(self) -> Snapshot:
        return self.revisions.head.snapshot

    def list_paths(self, *roles: FileRole) -> list[str]:
        return [file.path for file in self.files if file.role in roles]

    def list_shown_paths(self, *roles: FileRole) -> list[str]:
        """List the files as the runner of the new tests names them."""
        return [self.new_spec.suite.to_runner_path(path) for path in self.list_paths(*roles)]


class MatrixTrees(NamedTuple):
    """The trees that combine both sides."""

    without: Snapshot
    """The old code with the new tests and their configuration."""
    former: Snapshot
    """The new code with the old tests and their configuration."""
    restored: Snapshot
    """The new code and the new tests with the old test configuration."""


class MatrixOutcome(NamedTuple):
    """The runs of the matrix. A run that would repeat another one is that one."""

    old: SuiteRun
    new: SuiteRun
    trees: MatrixTrees
    results: ResultMatrix
    restored: SuiteResults | None
    table: tuple[MatrixRun, ...]
    notes: tuple[str, ...] = ()


def find_nearby(runs: SuiteRuns, change: VerifiedChange, cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return those of the results on the new code whose tests are in files that import a changed file."""
    view, changed = runs.create_test_view(change.head), change.list_shown_paths(*CODE_ROLES)
    files = frozenset(find_affected_tests(changed, sorted(view.snapshot_paths), view.read, is_test_path))
    return tuple(case for case in cases if view.find_file(case.id) in files)


def _combine_trees(runs: SuiteRuns, change: VerifiedChange) -> MatrixTrees:
    """Write the trees that combine the tests of one side with the code of the other."""
    base, head = change.base, change.head
    tests, configuration = change.list_paths(*_TEST_ROLES), change.list_paths(FileRole.configuration)
    without = runs.write(base, {path: runs.read(head, path) for path in tests})
    runs.share_environment(base, without)
    return MatrixTrees(
        without,
        runs.write(head, {path: runs.read(base, path) for path in tests}),
        runs.write(head, {path: runs.read(base, path) for path in configuration}),
    )


async def run_matrix(runs: SuiteRuns, change: VerifiedChange, old: SuiteRun, new: SuiteRun) -> MatrixOutcome:
    """Run the tests of each side on the code of the other, as far as that differs from the runs `old` and `new`."""
    return await _MatrixRunner(runs, change, old, new).run()


async def run_new_code(runs: SuiteRuns, change: VerifiedChange, new: SuiteRun, reason: str) -> MatrixOutcome:
    """Run the old tests on the new code, for an old code that cannot run. They stand in for those on the old code."""
    trees = _combine_trees(runs, change)
    tree, specs = trees.former, (change.old_spec, change.new_spec)
    former = await runs.run_suite("old tests on the new code", tree, specs[0]) if tree != change.head else new
    is_restored = trees.restored not in (tree, change.head)
    restored = await runs.run_suite("the old test configuration", trees.restored, specs[1]) if is_restored else former
    old_tests = SuiteResults(former.cases)
    results = ResultMatrix(old_tests, SuiteResults(new.cases), SuiteResults(()), old_tests)
    table = [_describe_gap(reason, new_tests=is_new) for is_new in (False, True)]
    if former is not new:
        table.append(describe_run(former, new_tests=False, new_code=True))
    table.append(describe_run(new, new_tests=True, new_code=True))
    table.sort(key=lambda cell: (cell.new_tests, cell.new_code))
    old_configuration = SuiteResults(restored.cases) if trees.restored != change.head else None
    return MatrixOutcome(former, new, trees, results, old_configuration, tuple(table))


def _describe_gap(reason: str, *, new_tests: bool) -> MatrixRun:
    return MatrixRun(new_tests=new_tests, new_code=False, counts=OutcomeCounts(), seconds=0.0, not_run=reason)


class _MatrixRunner:
    def __init__(self, runs: SuiteRuns, change: VerifiedChange, old: SuiteRun, new: SuiteRun) -> None:
        self._runs, self._change, self._old, self._new = runs, change, old, new
        self._view = runs.create_test_view(change.head)
        self._old_view = runs.create_test_view(change.base)
        self._changed = frozenset(change.list_shown_paths(FileRole.tests))
        self._notes: list[str] = []
        self._table = [
            describe_run(suite_run, new_tests=is_new, new_code=is_new, kept=tree.tree in runs.kept_trees)
            for is_new, suite_run, tree in ((False, old, change.base), (True, new, change.head))
        ]

    async def run(self) -> MatrixOutcome:
        change, old, new = self._change, SuiteResults(self._old.cases), SuiteResults(self._new.cases)
        trees = _combine_trees(self._runs, change)
        cells: dict[str, Coroutine[Any, Any, SuiteResults]] = {}
        if trees.former != change.head:
            cells["former"] = self._run_cell("old tests on the new code", trees.former, new_tests=False)
        if trees.without != change.base:
            cells["without"] = self._run_cell("new tests on the old code", trees.without, new_tests=True)
        if trees.restored not in (trees.former, change.head):
            cells["restored"] = self._run_with_old_configuration(trees.restored)
        results = dict(zip(cells, await run_together(cells.values()), strict=True))
        former, without = results.get("former", new), results.get("without", old)
        restored = results.get("restored", former) if trees.restored != change.head else None
        self._table.sort(key=lambda cell: (cell.new_tests, cell.new_code))
        matrix = ResultMatrix(old, new, without, former)
        return MatrixOutcome(self._old, self._new, trees, matrix, restored, tuple(self._table), tuple(self._notes))

    async def _run_with_old_configuration(self, tree: Snapshot) -> SuiteResults:
        activity = "the old test configuration"
        suite_run = await self._runs.run_suite(activity, tree, self._change.new_spec, tests=len(self._new.cases))
        return self._read_results(suite_run, f"with {activity}")

    async def _run_cell(self, activity: str, tree: Snapshot, *, new_tests: bool) -> SuiteResults:
        """Run the tests of one side on the code of the other: only those of changed files, if no other can differ."""
        new_code = not new_tests
        own, others = (self._new, self._old) if new_tests else (self._old, self._new)
        spec = self._change.new_spec if new_tests else self._change.old_spec
        names = self._select_names(own.cases)
        if names is None:
            suite_run = await self._runs.run_suite(
                activity, tree, spec, tests=len(own.cases), seconds=own.report.seconds
            )
            self._table.append(describe_run(suite_run, new_tests=new_tests, new_code=new_code))
            return self._read_results(suite_run, activity)
        unchanged = [case for case in others.cases if not self._is_in_changed_file(case.id)]
        if not names:
            return SuiteResults(unchanged)
        suite_run = await self._runs.run_suite(activity, tree, spec, names)
        self._table.append(describe_run(suite_run, new_tests=new_tests, new_code=new_code, partial=True))
        return SuiteResults([*unchanged, *self._read_results(suite_run, activity).cases.values()])

    def _read_results(self, suite_run: SuiteRun, activity: str) -> SuiteResults:
        if suite_run.problem:
            reason = next(iter(suite_run.report.fault.splitlines()), "")
            self._notes.append(f"{activity}: no result, because {clip(reason[:1].lower() + reason[1:], 200)}")
        return SuiteResults(suite_run.cases)

    def _select_names(self, cases: Iterable[Case]) -> list[str] | None:
        """Return what to run, as the runner names it; None for everything.

        If a changed file is not one that contains tests, it may matter for every test.
        """
        if self._change.list_paths(FileRole.configuration) or self._change.old_spec != self._change.new_spec:
            return None
        holding = {self._find_file(case.id) for case in (*self._old.cases, *self._new.cases)}
        if not self._changed <= holding:
            return None
        ids = [case.id for case in cases if self._is_in_changed_file(case.id)]
        return list(dict.fromkeys(id_.partition("::")[0] if "::" in id_ else id_ for id_ in ids))

    def _is_in_changed_file(self, id_: str) -> bool:
        return self._find_file(id_) in self._changed

    def _find_file(self, id_: str) -> str:
        return self._view.find_file(id_) or self._old_view.find_file(id_)


def describe_run(
    suite_run: SuiteRun, *, new_tests: bool, new_code: bool, partial: bool = False, kept: bool = False
) -> MatrixRun:
    return MatrixRun(
        new_tests=new_tests,
        new_code=new_code,
        counts=OutcomeCounts.from_cases(suite_run.cases),
        seconds=round(suite_run.report.seconds, 1),
        partial=partial,
        kept=kept,
        problem=clip(suite_run.report.fault, 600),
    )


class Steadiness(NamedTuple):
    """Which results of the matrix do not repeat."""

    flaky: frozenset[str]
    """Tests that fail in one run on the new code and pass in another, or fail on the old code when they run again."""
    former: SuiteResults
    """The old tests on the new code, without failures that do not repeat."""


async def repeat_failures(
    runs: SuiteRuns, change: VerifiedChange, outcome: MatrixOutcome, broken: Sequence[str], demanding: Sequence[str]
) -> Steadiness:
    """Run the tests again that count against the change: a few `broken` ones and those whose old form fails.

    Many failures at once are no coincidence, so they are not repeated.
    """
    flaky = set[str]()
    if 0 < len(broken) <= FIRST:
        again = await runs.run_suite("the new tests again", change.head, change.new_spec, tests=len(outcome.new.cases))
        flaky |= {id_ for id_ in broken if SuiteResults(again.cases).is_passed(id_)}
        remaining = [id_ for id_ in broken if id_ not in flaky and id_ in outcome.results.old.cases]
        if remaining:
            without = await runs.run_suite("without the change again", change.base, change.old_spec, remaining)
            flaky |= {id_ for id_ in remaining if SuiteResults(without.cases).is_red(id_)}
    former = outcome.results.former
    if 0 < len(demanding) <= FIRST:
        again = await runs.run_suite("the old tests again", outcome.trees.former, change.old_spec, demanding)
        former = former.with_run(_select_passed(demanding, again.cases), again.cases)
    return Steadiness(frozenset(flaky), former)


def _select_passed(ids: Collection[str], cases: Sequence[Case]) -> list[str]:
    results = SuiteResults(cases)
    return [id_ for id_ in ids if results.is_passed(id_)]
