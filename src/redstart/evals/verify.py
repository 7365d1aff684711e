"""Whether a task is one: red as it is given, green with its true fix, the same each time."""

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
    """What running a task told of it."""

    task: str
    digest: str
    ok: bool
    why: str = ""
    """Why it is left out; empty where it is not."""
    red: tuple[str, ...] = ()
    """The tests that the true fix makes green."""
    before: tuple[Case, ...] = ()
    """Every test of the given code and the hidden ones, without their texts; empty where it is left out."""
    seconds: float = 0.0
    """Of one run of all its tests."""


class _Seen(NamedTuple):
    runs: list[SuiteRun]

    @property
    def fault(self) -> str:
        return next((run.report.fault for run in self.runs if run.trouble), "")

    @property
    def is_steady(self) -> bool:
        return len({_outcomes(run.cases) for run in self.runs}) == 1


async def verify(grader: Grader, site: TaskFolder, repeats: int = REPEATS) -> TaskCheck:
    """Runs the task's tests so often on what is given, on that with the hidden tests, and with the fix too.

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
        return _left_out(task, f"not green with its true fix: {told or bad.unexplained or 'no test is fixed'}")
    if bare.tree != base.tree and task.shows_red:
        shown = await grader.run(site, shown_mended)
        if shown.trouble or any(case.red for case in shown.cases):
            return _left_out(task, "the tests that are shown are not green with its true fix")
    seconds = after.runs[0].report.seconds
    bare_cases = tuple(Case(id=case.id, outcome=case.outcome) for case in before.runs[0].cases)
    return TaskCheck(task=task.id, digest=task.digest, ok=True, red=targets, before=bare_cases, seconds=seconds)


def _why_no_start(task: Task, given: _Seen) -> str:
    """Why an agent could not begin from what is given; empty where it can."""
    if not task.shows_red:
        return ""
    if given.fault:
        return f"as it is given its tests do not run: {clip(given.fault, 300)}"
    if not given.is_steady:
        return "as it is given its tests are flaky"
    return "" if any(case.red for case in given.runs[0].cases) else "as it is given none of its tests is red"


def _why_not(before: _Seen, after: _Seen) -> str:
    for seen, when in ((before, "with the hidden tests"), (after, "with its true fix")):
        if seen.fault:
            return f"{when} its tests do not run: {clip(seen.fault, 300)}"
        if not seen.is_steady:
            return f"{when} its tests are flaky"
    return ""


async def _seen(grader: Grader, site: TaskFolder, snapshot: Snapshot, repeats: int) -> _Seen:
    return _Seen([await grader.run(site, snapshot) for _ in range(repeats)])


def _outcomes(cases: Sequence[Case]) -> frozenset[tuple[str, str]]:
    return frozenset((case.id, case.outcome.value) for case in cases)


def _left_out(task: Task, why: str) -> TaskCheck:
    return TaskCheck(task=task.id, digest=task.digest, ok=False, why=why)


def standards(known: Mapping[str, TaskCheck]) -> dict[str, GradingBaseline]:
    """What verifying found that tasks are graded by, so that nobody has to run them for it again; by their digests."""
    return {
        digest: GradingBaseline(item.before, tuple(sorted(item.red))) for digest, item in known.items() if item.before
    }


def read_verified(file: Path) -> dict[str, TaskCheck]:
    """What is known of tasks, by their digests; the last word on each counts. A line that was cut off is none."""
    return {line.digest: line for line in _lines(file)}


def _lines(file: Path) -> Iterator[TaskCheck]:
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield TaskCheck.model_validate_json(line)


def mend(file: Path) -> None:
    """Takes away what a crash left of a last line, so that the next one begins on its own."""
    data = file.read_bytes() if file.exists() else b""
    if data and not data.endswith(b"\n"):
        os.truncate(file, data.rfind(b"\n") + 1)


def keep_verified(file: Path, found: TaskCheck) -> None:
    """One more line of JSON, durable when it returns. Raises `StoreError` where it cannot be written."""
    data = found.model_dump_json().encode() + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # In one call, so that a line of one writer is not parted by that of another.
            if os.write(handle, data) != len(data):
                raise StoreError(f"{file.name} could not be written whole")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(f"{file.name} cannot be written: {error.strerror}") from error
