"""What earlier runs know of the failure that an attempt is about, and what a failed attempt leaves for later ones."""

from __future__ import annotations

from typing import NamedTuple

from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.learning import FailureRecord, RecalledCard, Reflection, Signature
from redstart.core.noun import clip
from redstart.core.report import PatchTestResult
from redstart.core.run import RunState
from redstart.core.visible import one_line
from redstart.ports.bundle import Ports

SHOWN = 3
"""Failed attempts of earlier runs that a question shows."""
CHANGE = 1200
"""Bytes of a patch's changed lines that are kept."""


class KnownOfFailure(NamedTuple):
    """What memory says of the failure at hand."""

    fixes: tuple[RecalledCard, ...]
    """By the failure of the attempt before, as far as they fit it better than the bug that the plan was made for."""
    failures: tuple[RecalledFailure, ...]


async def recall_for_attempt(run: RunState, ports: Ports) -> KnownOfFailure:
    """Ask memory by the bug and by the failure of the attempt before, which may be another one by now."""
    bug, last = first_failure(run), last_failure(run)
    is_other = last is not None and (bug is None or last.key != bug.key)
    signatures = tuple(item for item in (bug, last if is_other else None) if item is not None)
    tenant, repo = run.spec.tenant, run.spec.repo
    found: list[RecalledFailure] = []
    fixes: list[RecalledCard] = []
    if signatures:
        cases = run.now.reproduce.report.cases if run.now.reproduce else ()
        without = tuple(item for item in (run.run_id, run.spec.parent) if item)
        query = FailureQuery(signatures=signatures, test_id=cases[0].id if cases else "", without=without)
        found = await ports.memory.failures(query, tenant=tenant, repo=repo, limit=SHOWN)
    if is_other and last is not None:
        fixes = await ports.memory.recall_again(last, tenant=tenant, repo=repo)
    planned = {item.card.id: item.score for item in run.now.plan.recalled} if run.now.plan else {}
    return KnownOfFailure(tuple(fix for fix in fixes if fix.score > planned.get(fix.card.id, 0.0)), tuple(found))


def first_failure(run: RunState) -> Signature | None:
    """What failed before anything was changed."""
    return run.now.reproduce.report.signature if run.now.reproduce else None


def last_failure(run: RunState) -> Signature | None:
    """What the last attempt whose tests ran failed with."""
    return next((entry.failure for entry in reversed(run.history) if entry.failure is not None), None)


def failure_record(
    run: RunState, tested: PatchTestResult, diff: str, provenance: dict[str, str]
) -> FailureRecord | None:
    """What this attempt leaves; None where it is not known what it was to mend.

    Edits of a fix are made on the code as it was at the start. A program that is being written grows, so its edits are
    about what failed last.
    """
    grows = run.spec.task.makes_program and run.draft is not None
    signature = (last_failure(run) if grows else None) or first_failure(run)
    if signature is None:
        return None
    cases, patch, said = tested.report.cases, run.now.patch, run.now.reflect or Reflection()
    message = cases[0].message if cases else tested.report.fault
    return FailureRecord(
        id=f"{run.run_id}-{run.now.number}",
        error_signature=signature.key,
        family=signature.family,
        test_id=cases[0].id if cases else "",
        patch=patch.fingerprint if patch else "",
        what_failed=clip(message, 400),
        signature=signature,
        provenance=provenance,
        tried=clip(one_line(patch.why), 300) if patch else "",
        files=patch.files[:10] if patch else (),
        change=changed_lines(diff),
        root_cause=clip(one_line(said.root_cause), 300),
        try_next=clip(one_line(said.try_next), 300),
    )


def changed_lines(diff: str) -> str:
    """The lines that a diff adds and removes, each file's under its name."""
    kept: list[str] = []
    inside = False
    for line in diff.splitlines():
        inside = not line.startswith("diff --git ") and (inside or line.startswith("@@ "))
        if inside and line.startswith(("+", "-")):
            kept.append(line)
        elif not inside and line.startswith("+++ "):
            kept.append(line[4:].removeprefix("b/"))
    return clip("\n".join(kept), CHANGE)
