"""Describe to the user how far a run is from its goal."""

from __future__ import annotations

from redstart.core.frozen import format_count
from redstart.core.run import RunState


def describe_fix(fixed: int) -> str:
    """Describe what a verified fix achieved."""
    return (
        f"{format_count(fixed, 'failing test')} now {'passes' if fixed == 1 else 'pass'}, and no other test got worse"
    )


def explain_unproven(language: str) -> str:
    """Explain why a fix whose tests pass is not verified."""
    return (
        f"the tests pass by their own report; Redstart cannot alter tests written in {language} to prove that they can "
        "still fail"
    )


def describe_failing_tests(run: RunState) -> str:
    """Count the tests that fail after the last attempt: `2 of 3 target tests still fail`."""
    test_result, targets = run.now.test, run.now.reproduce.targets.count if run.now.reproduce else 0
    if run.spec.task.makes_program:
        written = run.now.reproduce.written if run.now.reproduce else 0
        counts = test_result.report.counts if test_result else None
        failing, total = (counts.red, counts.total) if counts and counts.red else (written, written)
        return _describe_failing(failing, total, "test")
    if test_result is None:
        return _describe_failing(targets, targets, "target test")
    verdict = test_result.verdict
    still_failing = verdict.still_red.count
    total = max(targets, still_failing + verdict.fixed.count)
    regressions = {
        "newly failing": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "newly skipped": verdict.newly_skipped.count,
        "flaky": verdict.flaky.count,
        "changed": verdict.changed.count,
    }
    phrases = [_describe_failing(still_failing, total, "target test")] if still_failing else []
    phrases += [format_count(count, f"{name} test") for name, count in regressions.items() if count]
    return ", ".join(phrases) or "the tests do not pass"


def describe_failing_before(run: RunState) -> str:
    """State how many tests failed before, if that number changed; empty otherwise."""
    earlier_counts = [entry.seen.wrong for entry in run.history if entry.seen.wrong is not None]
    before = earlier_counts[-1] if earlier_counts else (run.now.reproduce.targets.count if run.now.reproduce else 0)
    verdict = run.now.test.verdict if run.now.test else None
    if verdict is None or not before or verdict.newly_red or verdict.missing or run.spec.task.makes_program:
        return ""
    return f" (was {before})" if before != verdict.still_red.count else ""


def _describe_failing(failing: int, total: int, noun: str) -> str:
    if total == 1:
        return f"the {noun} still fails"
    return f"{failing:,} of {format_count(total, noun)} still {'fails' if failing == 1 else 'fail'}"
