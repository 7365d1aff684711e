"""What a run measures itself against."""

from __future__ import annotations

from redstart.core.report import Case, CaseList
from redstart.core.run import RunState
from redstart.ports.store.port.blobs import Blobs


def baseline_cases(run: RunState, blobs: Blobs) -> tuple[Case, ...]:
    """Every case of the run on the untouched snapshot."""
    found = run.now.reproduce
    return _cases(blobs, found.report.full) if found else ()


def targets(run: RunState, blobs: Blobs) -> tuple[str, ...]:
    """Every test id that must become green."""
    found = run.now.reproduce
    return tuple(blobs.get(found.targets_full).decode().splitlines()) if found and found.targets_full else ()


def red_cases(run: RunState, blobs: Blobs) -> list[Case]:
    """What is red, and is to become green, in the code that the next edits are made on; the targets first.

    What was red at the start and is no target (a test that lacks a database) is nobody's to mend.
    """
    drafted = _report_of_draft(run)
    wanted = set(targets(run, blobs))
    start = baseline_cases(run, blobs)
    hopeless = {case.id for case in start if case.red} - wanted
    red = (case for case in (_cases(blobs, drafted) if drafted else start) if case.red and case.id not in hopeless)
    return sorted(red, key=lambda case: (case.id not in wanted, case.id))


def _report_of_draft(run: RunState) -> str:
    """The newest report on the draft, which may not be that of the last attempt: one that made it worse is undone."""
    if run.draft is None or not run.history:
        return ""
    of_it = (entry.report for entry in reversed(run.history) if entry.report and entry.seen.tree == run.draft.tree)
    return next(of_it, run.history[-1].report)


def _cases(blobs: Blobs, full: str) -> tuple[Case, ...]:
    return CaseList.model_validate_json(blobs.get(full)).cases if full else ()
