"""Describes to the user how far a run is from its goal."""

from __future__ import annotations

from redstart.core.noun import many
from redstart.core.run import RunState


def green_in_words(fixed: int) -> str:
    """Describe what a verified fix achieved."""
    return f"{many(fixed, 'failing test')} now {'passes' if fixed == 1 else 'pass'}, and no other test got worse"


def unproven_in_words(language: str) -> str:
    """Explain why a fix whose tests pass is not verified."""
    return (
        f"the tests pass by their own report; Redstart cannot alter tests written in {language} to prove that they can "
        "still fail"
    )


def failing_tests(run: RunState) -> str:
    """Count the tests that fail after the last attempt: `2 of 3 target tests still fail`."""
    judged, targets = run.now.test, run.now.reproduce.targets.count if run.now.reproduce else 0
    if run.spec.task.makes_program:
        written = run.now.reproduce.written if run.now.reproduce else 0
        counts = judged.report.counts if judged else None
        failing, every = (counts.red, counts.total) if counts and counts.red else (written, written)
        return _still_fail(failing, every, "test")
    if judged is None:
        return _still_fail(targets, targets, "target test")
    verdict = judged.verdict
    red = verdict.still_red.count
    every = max(targets, red + verdict.fixed.count)
    worse = {
        "newly failing": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "newly skipped": verdict.newly_skipped.count,
        "flaky": verdict.flaky.count,
    }
    told = [_still_fail(red, every, "target test")] if red else []
    told += [many(count, f"{name} test") for name, count in worse.items() if count]
    return ", ".join(told) or "the tests do not pass"


def failing_before(run: RunState) -> str:
    """State how many tests failed before, if that number changed; empty otherwise."""
    tested = [entry.seen.wrong for entry in run.history if entry.seen.wrong is not None]
    before = tested[-1] if tested else (run.now.reproduce.targets.count if run.now.reproduce else 0)
    verdict = run.now.test.verdict if run.now.test else None
    if verdict is None or not before or verdict.newly_red or verdict.missing or run.spec.task.makes_program:
        return ""
    return f" (was {before})" if before != verdict.still_red.count else ""


def _still_fail(failing: int, every: int, noun: str) -> str:
    if every == 1:
        return f"the {noun} still fails"
    return f"{failing:,} of {many(every, noun)} still {'fails' if failing == 1 else 'fail'}"
