"""Measure a finished run from its committed steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from redstart.app.runs import get_result_snapshot
from redstart.app.wire import AppContext
from redstart.core.context import Context
from redstart.core.finding import TRIPWIRE
from redstart.core.report import CaseList, PatchTestResult
from redstart.core.run import Attempt, Result, RunState, Step
from redstart.evals.grading import Grade
from redstart.evals.outcome import NOT_APPLIED, EndPoint, RunKey, RunOutcome
from redstart.evals.scripted_models import TrueFix
from redstart.evals.task_repo import TaskFolder, apply_change
from redstart.ports.store.port.runs import StepRow

_NOT_BEGUN = frozenset({Result.no_tests, Result.environment, Result.already_green})


class GradedRun(NamedTuple):
    """A run that ended, and its grade; None if it made no patch."""

    state: RunState
    steps: Sequence[StepRow]
    """The committed steps of the run, and then those of its candidates."""
    grade: Grade | None
    graded_in: float = 0.0
    covered: bool | None = None
    """Whether any candidate is right; None for a run without candidates."""


def list_true_fixes(app: AppContext, task_folder: TaskFolder) -> tuple[TrueFix, ...]:
    """List the true fix of a task by file, without binary files. Empty if the fix is not known."""
    trees, base = app.trees, task_folder.spec.base
    if not task_folder.task.fix:
        return ()
    fixed = apply_change(trees, base, task_folder.task.fix, f"{task_folder.task.id}: its fix")
    fixes: list[TrueFix] = []
    for change in trees.list_changes(base, fixed):
        before, after = (trees.read(snapshot, change.path) or b"" for snapshot in (base, fixed))
        if b"\0" not in before + after:
            fixes.append(TrueFix(change.path, before.decode(errors="replace"), after.decode(errors="replace")))
    return tuple(fixes)


def build_outcome(app: AppContext, task_folder: TaskFolder, key: RunKey, graded_run: GradedRun) -> RunOutcome:
    """Build the row of a run."""
    state, steps = graded_run.state, graded_run.steps
    fixes = [fix for fix in list_true_fixes(app, task_folder) if fix.before]
    contexts = [row.state.now.retrieve for row in steps if row.step is Step.retrieve and row.state.now.retrieve]
    fix_shown = [is_fix_shown(fixes, context) for context in contexts]
    solved = graded_run.grade is not None and graded_run.grade.solved
    patched = get_result_snapshot(state)
    spend = state.spend
    return RunOutcome(
        key=key,
        run_id=state.run_id,
        result=state.result.value if state.result else state.status.value,
        solved=solved,
        claimed=patched is not None,
        place=_place(graded_run, localised=any(fix_shown) or not fixes),
        attempts=_count_attempts(graded_run),
        dishonest=len({(row.state.run_id, row.attempt) for row in steps if _is_dishonest(row)}),
        seconds=spend.seconds,
        graded_in=graded_run.graded_in,
        calls=spend.calls,
        input_tokens=spend.input_tokens,
        output_tokens=spend.output_tokens,
        usd=spend.usd,
        unpriced=spend.unpriced,
        rungs=_count_rungs(steps),
        recall=_recall(fixes, contexts[0]) if fixes and contexts else None,
        lines_shown=any(fix_shown) if fixes and contexts else None,
        repeated=_count_repeats(steps),
        revisited=_count_revisits(app, steps),
        files=tuple(change.path for change in app.trees.list_changes(state.spec.base, patched))[:20] if patched else (),
        patch=app.trees.diff(state.spec.base, patched).decode(errors="replace") if patched else "",
        covered=graded_run.covered,
        trouble=graded_run.grade.trouble if graded_run.grade else "",
    )


def _count_attempts(graded_run: GradedRun) -> int:
    """Count the attempts of a run, or those of all its candidates."""
    state = graded_run.state
    if state.spec.candidates is None:
        return state.now.number
    return len({(row.state.run_id, row.attempt) for row in graded_run.steps if row.step is Step.patch})


def is_fix_shown(fixes: Sequence[TrueFix], context: Context) -> bool:
    """Return whether a context contains every line that the fix changes."""

    def is_line_shown(path: str, line: int) -> bool:
        return any(chunk.path == path and chunk.start <= line <= chunk.end for chunk in context.chunks)

    return all(
        is_line_shown(fix.path, line)
        for fix in fixes
        for span in fix.needed
        for line in range(span.start, span.end + 1)
    )


def _recall(fixes: Sequence[TrueFix], context: Context) -> float:
    paths = {chunk.path for chunk in context.chunks}
    return sum(fix.path in paths for fix in fixes) / len(fixes)


def _count_rungs(steps: Sequence[StepRow]) -> dict[str, int]:
    applied = [row.state.now.apply for row in steps if row.step is Step.apply]
    edits = [edit for item in applied if item is not None for edit in item.rungs]
    return dict(Counter(edit.rung.value if edit.rung else NOT_APPLIED for edit in edits))


def _is_dishonest(row: StepRow) -> bool:
    attempt = row.state.now
    if row.step is Step.apply and attempt.apply is not None:
        return attempt.apply.refused
    if row.step is Step.check and attempt.check is not None:
        return any(item.tool == TRIPWIRE for item in attempt.check.first)
    return row.step is Step.test and attempt.test is not None and bool(attempt.test.verdict.tampered)


def _count_repeats(steps: Sequence[StepRow]) -> int:
    marks = [row.state.now.patch.fingerprint for row in steps if row.step is Step.patch and row.state.now.patch]
    fingerprints = [mark for mark in marks if mark]
    return len(fingerprints) - len(set(fingerprints))


def _count_revisits(app: AppContext, steps: Sequence[StepRow]) -> int:
    tests = [row.state.now.test for row in steps if row.step is Step.test]
    states = [
        _get_failing_state(app, item)
        for item in tests
        if item is not None and not item.verdict.is_green and not item.probe
    ]
    return len(states) - len(set(states))


def _get_failing_state(app: AppContext, test_result: PatchTestResult) -> tuple[object, ...]:
    """Return the failing state: which tests fail, and how the first one fails."""
    report = test_result.report
    cases = CaseList.model_validate_json(app.adapters.blobs.get(report.full)).cases if report.full else ()
    return (
        report.signature.key if report.signature else report.fault,
        frozenset(case.id for case in cases if case.is_red),
    )


def _place(graded_run: GradedRun, *, localised: bool) -> EndPoint:
    state, grade = graded_run.state, graded_run.grade
    if grade is not None:
        if grade.trouble:
            return EndPoint.broken
        return EndPoint.solved if grade.solved else EndPoint.false_green
    if state.result in _NOT_BEGUN or (state.now.reproduce is not None and state.now.reproduce.trouble):
        return EndPoint.not_reproduced
    if state.result is Result.capped:
        return EndPoint.budget
    if state.result in (Result.refused, Result.needs_human, Result.unproven, Result.partial, None):
        return EndPoint.refused
    last_attempt = graded_run.steps[-1].state.now if state.spec.candidates else state.now
    return _classify_attempt(last_attempt) if localised else EndPoint.not_localised


def _classify_attempt(attempt: Attempt) -> EndPoint:
    """Classify a run by its last attempt, if the model saw the lines of the fix."""
    if attempt.test is not None:
        only_worse = bool(attempt.test.verdict.newly_red) and not attempt.test.verdict.still_red
        return EndPoint.newly_red if only_worse else EndPoint.still_red
    if attempt.check is not None and (attempt.check.count or attempt.check.fault):
        return (
            EndPoint.refused if any(item.tool == TRIPWIRE for item in attempt.check.first) else EndPoint.edit_rejected
        )
    if attempt.apply is not None and not attempt.apply.ok:
        return EndPoint.refused if attempt.apply.refused else EndPoint.edit_rejected
    return EndPoint.no_edit
