"""The results of the base from the JUnit file of an earlier CI job, and the tests that run here all the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.app.triage.reported_tests import read_reported_cases
from redstart.app.verify.matrix import MatrixOutcome, VerifiedChange, describe_run
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.errors import ConfigError
from redstart.core.frozen import format_count
from redstart.core.report import Case, CaseList, OutcomeCounts, Report
from redstart.core.shell import ExitCause
from redstart.core.verification import ASKING, Claim, ClaimKind
from redstart.toolkit.honesty.changes.suite_results import SuiteResults
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.suite_directory import TreeView

_DECISIVE = frozenset(
    (ClaimKind.fixed, ClaimKind.broken, ClaimKind.hidden, ClaimKind.red_before, ClaimKind.environment, *ASKING)
)
"""Claims that rest on the result of the base: no report decides them."""


class _BaseResults(NamedTuple):
    cases: tuple[Case, ...]
    rerun: frozenset[str]
    """Files whose tests ran here."""
    seconds: float = 0.0


class ReportedBase:
    """The base of one verification, with results from a report and from runs of single files.

    The report may be of another machine. So each test runs here on the base if the verdict rests on its result there,
    or if the report does not name it.
    """

    def __init__(self, runs: SuiteRuns, change: VerifiedChange, path: Path) -> None:
        """Raises `ConfigError` if the report cannot be read or names no test of the base."""
        self._runs, self._change, self._name = runs, change, path.name
        self._view = TreeView.open(change.old_spec.suite, runs, change.base)
        cases = read_reported_cases(path, change.old_spec.suite, self._view)
        self._results = _BaseResults(tuple(case for case in cases if self._view.find_file(case.id)), frozenset())
        self._whole_run: SuiteRun | None = None
        self._foreign = len(cases) - len(self._results.cases)
        if not self._results.cases:
            raise ConfigError(
                f"{path} names no test of {change.revisions.base.version.name}",
                remedy="give the JUnit file of a run of the base's tests by the same test runner",
            )

    async def complete(self, new: SuiteRun) -> SuiteRun:
        """Return the results of the base. Tests of the new code that the report does not name run here, file by file.

        The whole suite runs here if the report cannot explain a fault of the run on the new code.
        """
        if new.problem or new.unexplained:
            return await self._run_whole_suite()
        reported = {case.id for case in self._results.cases}
        return await self._rerun(case.id for case in new.cases if case.id not in reported)

    async def decide(self, outcome: MatrixOutcome, claims: Iterable[Claim]) -> MatrixOutcome:
        """Run the tests here whose claims rest on the report. Return the outcome with their results."""
        old = await self._rerun(claim.test for claim in claims if claim.kind in _DECISIVE)
        results = SuiteResults(old.cases)
        is_same = outcome.results.without is outcome.results.old
        matrix = outcome.results._replace(old=results, **({"without": results} if is_same else {}))
        base_run = describe_run(old, new_tests=False, new_code=False)
        count = self._count_reported()
        base_run = base_run.model_copy(update={"reported": self._name if count else ""})
        table = (base_run, *outcome.table[1:])
        return outcome._replace(old=old, results=matrix, table=table, notes=(*outcome.notes, *self._list_notes(count)))

    async def _rerun(self, ids: Iterable[str]) -> SuiteRun:
        """Run the files of the tests on the base, unless they ran before."""
        before = self._results
        names = {file: _name_file(file, id_) for id_ in ids if (file := self._view.find_file(id_))}
        names = {file: name for file, name in names.items() if file not in before.rerun}
        if self._whole_run or not names:
            return self._whole_run or self._create_run()
        run = await self._runs.run_suite(
            "rest of the old tests on the old code",
            self._change.base,
            self._change.old_spec,
            tuple(names.values()),
        )
        if run.problem not in (SuiteProblem.none, SuiteProblem.no_tests):
            return await self._run_whole_suite()
        kept = self._select_outside(before.cases, names)
        self._results = _BaseResults(
            (*kept, *run.cases), before.rerun | names.keys(), before.seconds + run.report.seconds
        )
        return self._create_run()

    async def _run_whole_suite(self) -> SuiteRun:
        change = self._change
        self._whole_run = await self._runs.run_suite("old tests on the old code", change.base, change.old_spec)
        return self._whole_run

    def _select_outside(self, cases: Iterable[Case], files: Collection[str]) -> list[Case]:
        return [case for case in cases if self._view.find_file(case.id) not in files]

    def _create_run(self) -> SuiteRun:
        cases, blobs = self._results.cases, self._runs.blobs
        report = Report(
            runner=self._change.old_spec.suite.runner,
            counts=OutcomeCounts.from_cases(cases),
            full=blobs.put(CaseList(cases=cases).model_dump_json().encode()),
            output=blobs.put(b""),
            cause=ExitCause.failed if any(case.is_red for case in cases) else ExitCause.ok,
            exit_code=int(any(case.is_red for case in cases)),
            seconds=self._results.seconds,
        )
        return SuiteRun(report, cases, SuiteProblem.none, "")

    def _count_reported(self) -> int:
        if self._whole_run:
            return 0
        return len(self._select_outside(self._results.cases, self._results.rerun))

    def _list_notes(self, reported: int) -> Sequence[str]:
        total = len(self._results.cases)
        notes = (
            [
                f"{reported:,} of {format_count(total, 'result')} without the change are from {self._name} and were "
                "not rerun here"
            ]
            if reported
            else []
        )
        if self._foreign:
            notes.append(f"{format_count(self._foreign, 'test')} of {self._name} do not exist in the base")
        return notes


def _name_file(file: str, id_: str) -> str:
    """Return how the runner names all tests of the file of a test: its path, or its module if IDs are dotted."""
    return file if "::" in id_ or id_ == file else file.rpartition(".")[0].replace("/", ".")
