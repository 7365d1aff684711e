"""Grade on a copy, with the hidden tests in place and every other test restored, by our own verdict."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from redstart.app.wire import AppContext
from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.frozen import FrozenValue
from redstart.core.report import Case, Verdict
from redstart.evals.task_repo import TaskFolder, apply_change
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets, judge
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.suites.execute import SuiteRun, run_suite


class GradingBaseline(NamedTuple):
    """The test results that a task is graded against."""

    before: tuple[Case, ...]
    """Every test result on the given code, including the hidden tests."""
    targets: tuple[str, ...]
    """The tests that must pass."""
    problem: str = ""
    """Why it cannot be used for grading; empty if it can."""


class Grade(FrozenValue):
    """Whether a change solves a task."""

    solved: bool
    verdict: Verdict = Verdict()
    restored: tuple[str, ...] = ()
    """Tests and test configuration that the change touched; grading restores them first."""
    trouble: str = ""
    """Why the change could not be graded; empty if it was."""


class Grader:
    """Grades by running tests in the sandbox. The baseline of each task is measured once, unless it is `known`."""

    def __init__(self, app: AppContext, baselines: Mapping[str, GradingBaseline] | None = None) -> None:
        """Create a grader. `baselines` is keyed by task digest. Raises `SandboxUnavailable` if `app` has no sandbox."""
        if app.adapters.sandbox is None:
            raise SandboxUnavailable("grading needs a sandbox")
        self._app, self._sandbox = app, app.adapters.sandbox
        self._standards: dict[str, GradingBaseline] = dict(baselines or {})

    async def run(self, task_folder: TaskFolder, snapshot: Snapshot) -> SuiteRun:
        """Run all tests of the task once, on a fresh copy. Raises what the sandbox raises."""
        sign_without_source = partial(sign, is_source=lambda _: False)
        return await run_suite(
            self._sandbox, self._app.adapters.blobs, task_folder.spec, snapshot, sign=sign_without_source
        )

    def with_hidden(self, task_folder: TaskFolder, snapshot: Snapshot) -> Snapshot:
        return apply_change(
            self._app.trees, snapshot, task_folder.task.hidden, f"{task_folder.task.id}: its hidden tests"
        )

    def with_fix(self, task_folder: TaskFolder, snapshot: Snapshot) -> Snapshot:
        return apply_change(self._app.trees, snapshot, task_folder.task.fix, f"{task_folder.task.id}: its fix")

    async def get_baseline(self, task_folder: TaskFolder) -> GradingBaseline:
        """Return the baseline, measured with the given code and, if known, the true fix."""
        baseline = self._standards.get(task_folder.task.digest)
        if baseline is None:
            baseline = self._standards[task_folder.task.digest] = await self._find_standard(task_folder)
        return baseline

    async def _find_standard(self, task_folder: TaskFolder) -> GradingBaseline:
        snapshot = self.with_hidden(task_folder, task_folder.spec.base)
        suite_run = await self.run(task_folder, snapshot)
        failing = [case.id for case in suite_run.cases if case.is_red]
        if not suite_run.problem and not failing and _is_open(task_folder):
            return GradingBaseline(suite_run.cases, ())
        if suite_run.problem or not failing:
            return GradingBaseline(suite_run.cases, (), suite_run.report.fault or "no test fails")
        targets = set(task_folder.task.red) or set(failing)
        if task_folder.task.fix:
            fixed_run = await self.run(task_folder, self.with_fix(task_folder, snapshot))
            targets = find_passing_targets(targets, fixed_run.cases)
        trouble = "" if targets else "no failing test passes with the true fix"
        return GradingBaseline(suite_run.cases, tuple(sorted(targets)), trouble)

    async def grade(self, task_folder: TaskFolder, patched: Snapshot) -> Grade:
        """Grade whether the snapshot that an agent made solves the task. Raises what the sandbox raises."""
        standard = await self.get_baseline(task_folder)
        if standard.problem:
            return Grade(solved=False, trouble=standard.problem)
        trees, base = self._app.trees, task_folder.spec.base
        protected_paths = [change.path for change in trees.list_changes(base, patched) if find_protection(change.path)]
        restored = (
            trees.write(patched, {path: trees.read(base, path) for path in protected_paths})
            if protected_paths
            else patched
        )
        final = self.with_hidden(task_folder, restored)
        suite_run = await self.run(task_folder, final)
        judge_run = partial(
            judge,
            standard.before,
            suite_run.cases,
            standard.targets,
            unexplained=suite_run.unexplained or suite_run.report.fault,
        )
        verdict = judge_run()
        if standard.targets and verdict.is_green:
            # Run once more, since a green result may be luck. Any other result stays unsolved whatever a rerun shows.
            verdict = judge_run(repeats=[(await self.run(task_folder, final)).cases])
        solved = verdict.is_green if standard.targets else _is_no_worse(verdict)
        return Grade(solved=solved, verdict=verdict, restored=tuple(protected_paths[:20]))


def _is_open(task_folder: TaskFolder) -> bool:
    """Return whether only the goal defines the task. Then grading can only detect what got worse."""
    return not (task_folder.task.shows_red or task_folder.task.hidden or task_folder.task.fix)


def _is_no_worse(verdict: Verdict) -> bool:
    return not (verdict.newly_red or verdict.missing or verdict.newly_skipped or verdict.unexplained)
