"""Check that a task is usable: its tests fail as given and pass with its true fix, every time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError, StoreError
from redstart.core.noun import FrozenValue, clip
from redstart.core.report import Case
from redstart.evals.grading import Grader, GradingBaseline
from redstart.evals.sealed import TaskFolder
from redstart.evals.task import Task
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
        return next((run.report.fault for run in self.runs if run.trouble), "")

    @property
    def is_steady(self) -> bool:
        return len({_outcomes(run.cases) for run in self.runs}) == 1


async def verify(grader: Grader, site: TaskFolder, repeats: int = REPEATS) -> TaskCheck:
    """Run the task's tests `repeats` times on the given code, with the hidden tests added, and with the fix added too.

    Raises what the sandbox raises.
    """
    task, base = site.task, site.spec.base
    if not task.fix:
        return _left_out(task, "its true fix is not known")
    try:
        bare = grader.with_hidden(site, base)
        mended = grader.with_fix(site, bare)
        shown_mended = grader.with_fix(site, base)
    except ConfigError as error:
        return _left_out(task, str(error))
    given = await _seen(grader, site, base, repeats)
    if why := _why_no_start(task, given):
        return _left_out(task, why)
    before = given if bare.tree == base.tree else await _seen(grader, site, bare, repeats)
    after = await _seen(grader, site, mended, repeats)
    if why := _why_not(before, after):
        return _left_out(task, why)
    targets = tuple(task.red) or tuple(case.id for case in before.runs[0].cases if case.red)
    verdicts = [judge(item.cases, two.cases, targets) for item, two in zip(before.runs, after.runs, strict=True)]
    bad = next((verdict for verdict in verdicts if not verdict.honest_green), None)
    if bad is not None:
        told = {name: ids.first[:3] for name in ("still_red", "newly_red", "missing") if (ids := getattr(bad, name))}
        return _left_out(task, f"does not pass with its true fix: {told or bad.unexplained or 'no test is fixed'}")
    if bare.tree != base.tree and task.shows_red:
        shown = await grader.run(site, shown_mended)
        if shown.trouble or any(case.red for case in shown.cases):
            return _left_out(task, "the visible tests do not pass with its true fix")
    seconds = after.runs[0].report.seconds
    bare_cases = tuple(Case(id=case.id, outcome=case.outcome) for case in before.runs[0].cases)
    return TaskCheck(task=task.id, digest=task.digest, ok=True, red=targets, before=bare_cases, seconds=seconds)


def _why_no_start(task: Task, given: _Seen) -> str:
    """Return why an agent cannot start from the given code. Empty if it can."""
    if not task.shows_red:
        return ""
    if given.fault:
        return f"as given, its tests do not run: {clip(given.fault, 300)}"
    if not given.is_steady:
        return "as given, its tests are flaky"
    return "" if any(case.red for case in given.runs[0].cases) else "as given, none of its tests fails"


def _why_not(before: _Seen, after: _Seen) -> str:
    for seen, when in ((before, "with the hidden tests"), (after, "with its true fix")):
        if seen.fault:
            return f"{when}, its tests do not run: {clip(seen.fault, 300)}"
        if not seen.is_steady:
            return f"{when}, its tests are flaky"
    return ""


async def _seen(grader: Grader, site: TaskFolder, snapshot: Snapshot, repeats: int) -> _Seen:
    return _Seen([await grader.run(site, snapshot) for _ in range(repeats)])


def _outcomes(cases: Sequence[Case]) -> frozenset[tuple[str, str]]:
    return frozenset((case.id, case.outcome.value) for case in cases)


def _left_out(task: Task, why: str) -> TaskCheck:
    return TaskCheck(task=task.id, digest=task.digest, ok=False, why=why)


def standards(known: Mapping[str, TaskCheck]) -> dict[str, GradingBaseline]:
    """Return the baselines for grading from the checks, by task digest, so that tasks need not run again."""
    return {
        digest: GradingBaseline(item.before, tuple(sorted(item.red))) for digest, item in known.items() if item.before
    }


def read_verified(file: Path) -> dict[str, TaskCheck]:
    """Read the checks of tasks by digest. The last check of a task counts, and a partial last line is ignored."""
    return {line.digest: line for line in _lines(file)}


def _lines(file: Path) -> Iterator[TaskCheck]:
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield TaskCheck.model_validate_json(line)


def mend(file: Path) -> None:
    """Remove a partial last line that a crash left, so that the next line starts cleanly."""
    data = file.read_bytes() if file.exists() else b""
    if data and not data.endswith(b"\n"):
        os.truncate(file, data.rfind(b"\n") + 1)


def keep_verified(file: Path, found: TaskCheck) -> None:
    """Append a check as a line of JSON, durable on return. Raises `StoreError` if it cannot be written."""
    data = found.model_dump_json().encode() + b"\n"
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
