"""Measure a finished run from its committed steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from redstart.app.runs import result_snapshot
from redstart.app.wire import AppContext
from redstart.core.context import Context
from redstart.core.finding import TRIPWIRE
from redstart.core.report import CaseList, PatchTestResult
from redstart.core.run import Attempt, Result, RunState, Step
from redstart.evals.grading import Grade
from redstart.evals.oracles import TrueFix
from redstart.evals.outcome import NO_RUNG, EndPoint, RunKey, RunOutcome
from redstart.evals.sealed import TaskFolder, changed
from redstart.ports.store.port.runs import StepRow

_NOT_BEGUN = frozenset({Result.no_tests, Result.environment, Result.already_green})


class GradedRun(NamedTuple):
    """A run that ended, and its grade; None if it made no patch."""

    state: RunState
    steps: Sequence[StepRow]
    grade: Grade | None
    graded_in: float = 0.0


def true_fixes(house: AppContext, site: TaskFolder) -> tuple[TrueFix, ...]:
    """List the true fix of a task by file, without binary files. Empty if the fix is not known."""
    trees, base = house.trees, site.spec.base
    if not site.task.fix:
        return ()
    fixed = changed(trees, base, site.task.fix, f"{site.task.id}: its fix")
    found: list[TrueFix] = []
    for change in trees.changes(base, fixed):
        before, after = (trees.read(snapshot, change.path) or b"" for snapshot in (base, fixed))
        if b"\0" not in before + after:
            found.append(TrueFix(change.path, before.decode(errors="replace"), after.decode(errors="replace")))
    return tuple(found)


def outcome_of(house: AppContext, site: TaskFolder, key: RunKey, ran: GradedRun) -> RunOutcome:
    """Build the row of a run."""
    state, steps = ran.state, ran.steps
    fixes = [fix for fix in true_fixes(house, site) if fix.before]
    contexts = [row.state.now.retrieve for row in steps if row.step is Step.retrieve and row.state.now.retrieve]
    shown = [is_shown(fixes, context) for context in contexts]
    solved = ran.grade is not None and ran.grade.solved
    made = result_snapshot(state)
    spend = state.spend
    return RunOutcome(
        key=key,
        run_id=state.run_id,
        result=state.result.value if state.result else state.status.value,
        solved=solved,
        claimed=made is not None,
        place=_place(ran, localised=any(shown) or not fixes),
        attempts=state.now.number,
        dishonest=len({row.attempt for row in steps if _is_dishonest(row)}),
        seconds=spend.seconds,
        graded_in=ran.graded_in,
        calls=spend.calls,
        input_tokens=spend.input_tokens,
        output_tokens=spend.output_tokens,
        usd=spend.usd,
        unpriced=spend.unpriced,
        rungs=_rungs(steps),
        recall=_recall(fixes, contexts[0]) if fixes and contexts else None,
        lines_shown=any(shown) if fixes and contexts else None,
        repeated=_repeated(steps),
        revisited=_revisited(house, steps),
        files=tuple(change.path for change in house.trees.changes(state.spec.base, made))[:20] if made else (),
        patch=house.trees.diff(state.spec.base, made).decode(errors="replace") if made else "",
        trouble=ran.grade.trouble if ran.grade else "",
    )


def is_shown(fixes: Sequence[TrueFix], context: Context) -> bool:
    """Return whether a context contains every line that the fix changes."""

    def holds(path: str, line: int) -> bool:
        return any(chunk.path == path and chunk.start <= line <= chunk.end for chunk in context.chunks)

    return all(
        holds(fix.path, line) for fix in fixes for span in fix.needed for line in range(span.start, span.end + 1)
    )


def _recall(fixes: Sequence[TrueFix], context: Context) -> float:
    there = {chunk.path for chunk in context.chunks}
    return sum(fix.path in there for fix in fixes) / len(fixes)


def _rungs(steps: Sequence[StepRow]) -> dict[str, int]:
    applied = [row.state.now.apply for row in steps if row.step is Step.apply]
    edits = [edit for item in applied if item is not None for edit in item.rungs]
    return dict(Counter(edit.rung.value if edit.rung else NO_RUNG for edit in edits))


def _is_dishonest(row: StepRow) -> bool:
    now = row.state.now
    if row.step is Step.apply and now.apply is not None:
        return now.apply.refused
    if row.step is Step.check and now.check is not None:
        return any(item.tool == TRIPWIRE for item in now.check.first)
    return row.step is Step.test and now.test is not None and bool(now.test.verdict.tampered)


def _repeated(steps: Sequence[StepRow]) -> int:
    marks = [row.state.now.patch.fingerprint for row in steps if row.step is Step.patch and row.state.now.patch]
    known = [mark for mark in marks if mark]
    return len(known) - len(set(known))


def _revisited(house: AppContext, steps: Sequence[StepRow]) -> int:
    tests = [row.state.now.test for row in steps if row.step is Step.test]
    states = [
        _failing(house, item) for item in tests if item is not None and not item.verdict.honest_green and not item.probe
    ]
    return len(states) - len(set(states))


def _failing(house: AppContext, judged: PatchTestResult) -> tuple[object, ...]:
    """Return the failing state: which tests fail, and how the first one fails."""
    report = judged.report
    cases = CaseList.model_validate_json(house.adapters.blobs.get(report.full)).cases if report.full else ()
    return (
        report.signature.key if report.signature else report.fault,
        frozenset(case.id for case in cases if case.red),
    )


def _place(ran: GradedRun, *, localised: bool) -> EndPoint:
    state, grade = ran.state, ran.grade
    if grade is not None:
        if grade.trouble:
            return EndPoint.broken
        return EndPoint.solved if grade.solved else EndPoint.false_green
    if state.result in _NOT_BEGUN or (state.now.reproduce is not None and state.now.reproduce.trouble):
        return EndPoint.not_reproduced
    if state.result is Result.capped:
        return EndPoint.budget
    if state.result in (Result.refused, Result.needs_human, Result.unproven, None):
        return EndPoint.refused
    return _place_of(state.now) if localised else EndPoint.not_localised


def _place_of(last: Attempt) -> EndPoint:
    """Classify a run by its last attempt, if the model saw the lines of the fix."""
    if last.test is not None:
        only_worse = bool(last.test.verdict.newly_red) and not last.test.verdict.still_red
        return EndPoint.newly_red if only_worse else EndPoint.still_red
    if last.check is not None and (last.check.count or last.check.fault):
        return EndPoint.refused if any(item.tool == TRIPWIRE for item in last.check.first) else EndPoint.edit_rejected
    if last.apply is not None and not last.apply.ok:
        return EndPoint.refused if last.apply.refused else EndPoint.edit_rejected
    return EndPoint.no_edit
