"""Check that a task is usable: its tests always fail on the given code and always pass with its reference fix."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError, StoreError
from redstart.core.frozen import FrozenValue, clip
from redstart.core.report import Case
from redstart.evals.grading import Grader, GradingBaseline
from redstart.evals.task import Task
from redstart.evals.task_repo import TaskFolder
from redstart.toolkit.honesty.verdict.verdict import judge
from redstart.toolkit.suites.execute import SuiteRun

REPEATS = 3


class TaskCheck(FrozenValue):
    """The result of checking a task by running it."""

    task: str
    digest: str
    ok: bool
    why: str = ""
    """Why the task is unusable; empty if it is usable."""
    red: tuple[str, ...] = ()
    """The tests that the true fix makes pass."""
    before: tuple[Case, ...] = ()
    """Every test of the given code and the hidden tests, without messages; empty if the task is unusable."""
    seconds: float = 0.0
    """Duration of one run of all its tests."""


class _Seen(NamedTuple):
    runs: list[SuiteRun]

    @property
    def fault(self) -> str:
        return next((run.report.fault for run in self.runs if run.problem), "")

    @property
    def is_steady(self) -> bool:
        return len({_collect_outcomes(run.cases) for run in self.runs}) == 1


async def verify(grader: Grader, task_folder: TaskFolder, repeats: int = REPEATS) -> TaskCheck:
    """Run the task's tests `repeats` times with the hidden tests added, and with the fix added too.

    If an agent starts from failing tests, run them on the given code too.

    Raises what the sandbox raises.
    """
    task, base = task_folder.task, task_folder.spec.base
    if not task.fix:
        return _reject_task(task, "it has no reference fix")
    try:
        hidden_snapshot = grader.with_hidden(task_folder, base)
        fixed_snapshot = grader.with_fix(task_folder, hidden_snapshot)
        visible_fixed = grader.with_fix(task_folder, base)
    except ConfigError as error:
        return _reject_task(task, str(error))
    before = await _run_repeatedly(grader, task_folder, hidden_snapshot, repeats)
    if task.shows_red:
        is_same = hidden_snapshot.tree == base.tree
        given_runs = before if is_same else await _run_repeatedly(grader, task_folder, base, repeats)
        if reason := _find_start_problem(given_runs):
            return _reject_task(task, reason)
    after = await _run_repeatedly(grader, task_folder, fixed_snapshot, repeats)
    if reason := _find_run_problem(before, after):
        return _reject_task(task, reason)
    targets = tuple(task.red) or tuple(case.id for case in before.runs[0].cases if case.is_red)
    verdicts = [judge(item.cases, other.cases, targets) for item, other in zip(before.runs, after.runs, strict=True)]
    failed_verdict = next((verdict for verdict in verdicts if not verdict.is_green), None)
    if failed_verdict is not None:
        problems = {
            name: ids.first[:3]
            for name in ("still_red", "newly_red", "missing")
            if (ids := getattr(failed_verdict, name))
        }
        return _reject_task(
            task,
            f"does not pass with its reference fix: {problems or failed_verdict.unexplained or 'no test is fixed'}",
        )
    if hidden_snapshot.tree != base.tree and task.shows_red:
        visible_run = await grader.run(task_folder, visible_fixed)
        if visible_run.problem or any(case.is_red for case in visible_run.cases):
            return _reject_task(task, "the visible tests do not pass with its reference fix")
    seconds = after.runs[0].report.seconds
    bare_cases = tuple(Case(id=case.id, outcome=case.outcome) for case in before.runs[0].cases)
    return TaskCheck(task=task.id, digest=task.digest, ok=True, red=targets, before=bare_cases, seconds=seconds)


def _find_start_problem(given_runs: _Seen) -> str:
    """Return why an agent cannot start from the failing tests of the given code. Empty if it can."""
    if given_runs.fault:
        return f"before the fix, its tests do not run: {clip(given_runs.fault, 300)}"
    if not given_runs.is_steady:
        return "before the fix, its tests are flaky"
    return "" if any(case.is_red for case in given_runs.runs[0].cases) else "before the fix, none of its tests fails"


def _find_run_problem(before: _Seen, after: _Seen) -> str:
    for runs, condition in ((before, "with the hidden tests"), (after, "with its reference fix")):
        if runs.fault:
            return f"{condition}, its tests do not run: {clip(runs.fault, 300)}"
        if not runs.is_steady:
            return f"{condition}, its tests are flaky"
    return ""


async def _run_repeatedly(grader: Grader, task_folder: TaskFolder, snapshot: Snapshot, repeats: int) -> _Seen:
    return _Seen([await grader.run(task_folder, snapshot) for _ in range(repeats)])


def _collect_outcomes(cases: Sequence[Case]) -> frozenset[tuple[str, str]]:
    return frozenset((case.id, case.outcome.value) for case in cases)


def _reject_task(task: Task, reason: str) -> TaskCheck:
    return TaskCheck(task=task.id, digest=task.digest, ok=False, why=reason)


def build_baselines(checks: Mapping[str, TaskCheck]) -> dict[str, GradingBaseline]:
    """Return the baselines for grading from the checks, by task digest, so that tasks need not run again."""
    return {
        digest: GradingBaseline(item.before, tuple(sorted(item.red))) for digest, item in checks.items() if item.before
    }


def read_verified(file: Path) -> dict[str, TaskCheck]:
    """Read the checks of tasks by digest. The last check of a task counts, and a partial last line is ignored."""
    return {line.digest: line for line in _read_checks(file)}


def _read_checks(file: Path) -> Iterator[TaskCheck]:
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield TaskCheck.model_validate_json(line)


def remove_partial_line(file: Path) -> None:
    """Remove a partial last line that a crash left, so that the next line starts cleanly."""
    data = file.read_bytes() if file.exists() else b""
    if data and not data.endswith(b"\n"):
        os.truncate(file, data.rfind(b"\n") + 1)


def keep_verified(file: Path, check: TaskCheck) -> None:
    """Append a check as a line of JSON, durable on return. Raises `StoreError` if it cannot be written."""
    data = check.model_dump_json().encode() + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # One call, so that lines of two writers do not mix.
            if os.write(handle, data) != len(data):
                raise StoreError(f"{file.name} could not be written completely")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(f"{file.name} cannot be written: {error.strerror}") from error
