"""Decide how an audit ends."""

from __future__ import annotations

from redstart.core.finding import Findings
from redstart.core.noun import many
from redstart.core.run import Decision, Result, RunState
from redstart.core.tasks import AuditTask
from redstart.ports.bundle import Ports
from redstart.steps.decide.ending import accept, end


async def decide_audit(run: RunState, _ports: Ports) -> Decision:
    """End the audit with its findings. Only new findings that reach the user's risk threshold make it fail."""
    audited = run.now.audit or Findings()
    count = many(audited.count, "finding") if audited.count else "no findings"
    warning = f"; {audited.review.warning}" if audited.review and audited.review.warning else ""
    if not audited.failing:
        return accept(Result.reported, count + warning)
    scan = run.spec.task_of(AuditTask).scan
    risk = scan.fail_on if scan else None
    return end(Result.found, f"{count}, {audited.failing} new with risk {risk or 'low'} or above{warning}")
