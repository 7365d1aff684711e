"""Recall what earlier runs know about an attempt's failure, and record a failed attempt for later runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.frozen import clip
from redstart.core.learning import FailureRecord, RecalledCard, Reflection, Signature
from redstart.core.report import PatchTestResult
from redstart.core.run import RunState
from redstart.core.safe_text import to_one_line
from redstart.ports.bundle import Ports

MAX_FIXES = 3
"""How many earlier fixes one recall returns."""
MAX_SHOWN_ATTEMPTS = 3
"""How many failed attempts of earlier runs a question shows."""
CHANGE = 1200
"""How many bytes of a patch's changed lines are kept."""


class KnownOfFailure(NamedTuple):
    """What memory contains about the current failure."""

    fixes: tuple[RecalledCard, ...]
    """Fixes recalled by the previous attempt's failure that fit it better than the bug that the plan is for."""
    failures: tuple[RecalledFailure, ...]


async def recall_for_attempt(run: RunState, ports: Ports) -> KnownOfFailure:
    """Recall by the original bug and by the previous attempt's failure, which may differ by now."""
    bug, last = get_first_failure(run), get_last_failure(run)
    is_other = last is not None and (bug is None or last.key != bug.key)
    signatures = tuple(item for item in (bug, last if is_other else None) if item is not None)
    tenant, repo = run.spec.tenant, run.spec.repo
    failures: list[RecalledFailure] = []
    fixes: list[RecalledCard] = []
    if signatures:
        cases = run.now.reproduce.report.cases if run.now.reproduce else ()
        excluded = (run.run_id, *filter(None, [run.spec.parent]), *run.spec.sibling_ids)
        query = FailureQuery(signatures=signatures, test_id=cases[0].id if cases else "", without=excluded)
        failures = await ports.memory.recall_failures(query, tenant=tenant, repo=repo, limit=MAX_SHOWN_ATTEMPTS)
    if is_other and last is not None:
        limit = MAX_FIXES + len(run.spec.sibling_ids)
        fixes = list(
            leave_out_siblings(run, await ports.memory.recall_again(last, tenant=tenant, repo=repo, limit=limit))
        )
    planned_scores = {item.card.id: item.score for item in run.now.plan.recalled} if run.now.plan else {}
    return KnownOfFailure(
        tuple(fix for fix in fixes if fix.score > planned_scores.get(fix.card.id, 0.0)), tuple(failures)
    )


def leave_out_siblings(run: RunState, fixes: Sequence[RecalledCard]) -> tuple[RecalledCard, ...]:
    """Leave out what other candidates for the same fix saved: candidates work independently."""
    return tuple(fix for fix in fixes if fix.card.provenance.get("run") not in run.spec.sibling_ids)[:MAX_FIXES]


def get_first_failure(run: RunState) -> Signature | None:
    """Find the failure before any change."""
    return run.now.reproduce.report.signature if run.now.reproduce else None


def get_last_failure(run: RunState) -> Signature | None:
    """Find the failure of the last attempt whose tests ran."""
    return next((entry.failure for entry in reversed(run.history) if entry.failure is not None), None)


def build_failure_record(
    run: RunState, result: PatchTestResult, diff: str, provenance: dict[str, str]
) -> FailureRecord | None:
    """Build the record that this attempt leaves. None if the failure that it was meant to fix is unknown.

    The edits of a fix apply to the code as it was at the start. A new program grows, so its edits are about the last
    failure.
    """
    grows = run.spec.task.makes_program and run.draft is not None
    signature = (get_last_failure(run) if grows else None) or get_first_failure(run)
    if signature is None:
        return None
    cases, patch, reflection = result.report.cases, run.now.patch, run.now.reflect or Reflection()
    message = cases[0].message if cases else result.report.fault
    return FailureRecord(
        id=f"{run.run_id}-{run.now.number}",
        error_signature=signature.key,
        family=signature.family,
        test_id=cases[0].id if cases else "",
        patch=patch.fingerprint if patch else "",
        what_failed=clip(message, 400),
        signature=signature,
        provenance=provenance,
        tried=clip(to_one_line(patch.why), 300) if patch else "",
        files=patch.files[:10] if patch else (),
        change=extract_changed_lines(diff),
        root_cause=clip(to_one_line(reflection.root_cause), 300),
        try_next=clip(to_one_line(reflection.try_next), 300),
    )


def extract_changed_lines(diff: str) -> str:
    """Extract the lines that a diff adds and removes, each file's under its name."""
    lines: list[str] = []
    inside = False
    for line in diff.splitlines():
        inside = not line.startswith("diff --git ") and (inside or line.startswith("@@ "))
        if inside and line.startswith(("+", "-")):
            lines.append(line)
        elif not inside and line.startswith("+++ "):
            lines.append(line[4:].removeprefix("b/"))
    return clip("\n".join(lines), CHANGE)
