"""The baseline of a run, its targets and its failing tests."""

from __future__ import annotations

from redstart.core.report import Case, CaseList
from redstart.core.run import RunState
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.honesty.verdict.set_aside import list_set_aside, load_ids


def load_baseline_cases(run: RunState, blobs: Blobs) -> tuple[Case, ...]:
    """Return every case of the run on the untouched snapshot."""
    reproduction = run.now.reproduce
    return _load_cases(blobs, reproduction.report.full) if reproduction else ()


def load_targets(run: RunState, blobs: Blobs) -> tuple[str, ...]:
    """Return every test ID that must turn green: without the tests that are set aside now."""
    reproduction = run.now.reproduce
    if reproduction is None or not reproduction.targets_full:
        return ()
    targets = tuple(blobs.get(reproduction.targets_full).decode().splitlines())
    entries = list_set_aside(run)
    if not entries and not reproduction.set_aside:
        return targets
    set_aside = load_ids(entries, blobs)
    # A test that was set aside at the baseline may have become a target since.
    restored = load_ids(reproduction.set_aside, blobs).difference(targets)
    return tuple(id_ for id_ in (*targets, *sorted(restored)) if id_ not in set_aside)


def list_failing_cases(run: RunState, blobs: Blobs, report: str = "") -> list[Case]:
    """List the failing tests to fix, targets first: those of a report, or of the code that the next edits apply to.

    A test that failed at the start and is not a target (one that lacks a database) is left out.
    """
    report = report or _find_draft_report(run)
    target_ids = set(load_targets(run, blobs))
    start = load_baseline_cases(run, blobs)
    hopeless = {case.id for case in start if case.is_red} - target_ids
    cases = _load_cases(blobs, report) if report else start
    failing = (case for case in cases if case.is_red and case.id not in hopeless)
    return sorted(failing, key=lambda case: (case.id not in target_ids, case.id))


def _find_draft_report(run: RunState) -> str:
    """Return the newest report on the draft; an attempt that made it worse is undone, so it may not be the last one."""
    if run.draft is None or not run.history:
        return ""
    reports = (entry.report for entry in reversed(run.history) if entry.report and entry.seen.tree == run.draft.tree)
    return next(reports, run.history[-1].report)


def _load_cases(blobs: Blobs, full: str) -> tuple[Case, ...]:
    return CaseList.model_validate_json(blobs.get(full)).cases if full else ()
