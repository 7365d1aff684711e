"""The baseline of a run, its targets and its failing tests."""

from __future__ import annotations

from redstart.core.report import Case, CaseList
from redstart.core.run import RunState
from redstart.ports.store.port.blobs import Blobs


def baseline_cases(run: RunState, blobs: Blobs) -> tuple[Case, ...]:
    """Return every case of the run on the untouched snapshot."""
    found = run.now.reproduce
    return _cases(blobs, found.report.full) if found else ()


def targets(run: RunState, blobs: Blobs) -> tuple[str, ...]:
    """Return every test ID that must turn green."""
    found = run.now.reproduce
    return tuple(blobs.get(found.targets_full).decode().splitlines()) if found and found.targets_full else ()


def red_cases(run: RunState, blobs: Blobs) -> list[Case]:
    """List the failing tests to fix in the code that the next edits apply to, targets first.

    A test that failed at the start and is not a target (one that lacks a database) is left out.
    """
    drafted = _report_of_draft(run)
    wanted = set(targets(run, blobs))
    start = baseline_cases(run, blobs)
    hopeless = {case.id for case in start if case.red} - wanted
    red = (case for case in (_cases(blobs, drafted) if drafted else start) if case.red and case.id not in hopeless)
    return sorted(red, key=lambda case: (case.id not in wanted, case.id))


def _report_of_draft(run: RunState) -> str:
    """Return the newest report on the draft; an attempt that made it worse is undone, so it may not be the last one."""
    if run.draft is None or not run.history:
        return ""
    of_it = (entry.report for entry in reversed(run.history) if entry.report and entry.seen.tree == run.draft.tree)
    return next(of_it, run.history[-1].report)


def _cases(blobs: Blobs, full: str) -> tuple[Case, ...]:
    return CaseList.model_validate_json(blobs.get(full)).cases if full else ()
