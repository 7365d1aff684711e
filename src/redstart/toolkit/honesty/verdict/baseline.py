"""The baseline of a run, its targets and its failing tests."""

from __future__ import annotations

from redstart.core.report import Case, CaseList
from redstart.core.run import RunState
from redstart.ports.store.port.blobs import Blobs


def load_baseline_cases(run: RunState, blobs: Blobs) -> tuple[Case, ...]:
    """Return every case of the run on the untouched snapshot."""
    reproduction = run.now.reproduce
    return _load_cases(blobs, reproduction.report.full) if reproduction else ()


def load_targets(run: RunState, blobs: Blobs) -> tuple[str, ...]:
    """Return every test ID that must turn green."""
    reproduction = run.now.reproduce
    return (
        tuple(blobs.get(reproduction.targets_full).decode().splitlines())
        if reproduction and reproduction.targets_full
        else ()
    )


def list_failing_cases(run: RunState, blobs: Blobs) -> list[Case]:
    """List the failing tests to fix in the code that the next edits apply to, targets first.

    A test that failed at the start and is not a target (one that lacks a database) is left out.
    """
    drafted = _find_draft_report(run)
    target_ids = set(load_targets(run, blobs))
    start = load_baseline_cases(run, blobs)
    hopeless = {case.id for case in start if case.is_red} - target_ids
    failing = (
        case for case in (_load_cases(blobs, drafted) if drafted else start) if case.is_red and case.id not in hopeless
    )
    return sorted(failing, key=lambda case: (case.id not in target_ids, case.id))


def _find_draft_report(run: RunState) -> str:
    """Return the newest report on the draft; an attempt that made it worse is undone, so it may not be the last one."""
    if run.draft is None or not run.history:
        return ""
    reports = (entry.report for entry in reversed(run.history) if entry.report and entry.seen.tree == run.draft.tree)
    return next(reports, run.history[-1].report)


def _load_cases(blobs: Blobs, full: str) -> tuple[Case, ...]:
    return CaseList.model_validate_json(blobs.get(full)).cases if full else ()
