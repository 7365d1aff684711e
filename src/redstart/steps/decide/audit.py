"""Decide how an audit ends."""

from __future__ import annotations

from redstart.core.finding import Findings
from redstart.core.frozen import format_count
from redstart.core.run import Decision, Result, RunState
from redstart.core.tasks import AuditTask
from redstart.ports.bundle import Ports
from redstart.steps.decide.ending import accept, end


async def decide_audit(run: RunState, _ports: Ports) -> Decision:
    """End the audit with its findings. Only new findings that reach the user's risk threshold make it fail."""
    findings = run.now.audit or Findings()
    count = format_count(findings.count, "finding") if findings.count else "no findings"
    warning = f"; {findings.review.warning}" if findings.review and findings.review.warning else ""
    if not findings.failing:
        return accept(Result.reported, count + warning)
    scan = run.spec.get_task(AuditTask).scan
    risk = scan.fail_on if scan else None
    return end(Result.found, f"{count}, {findings.failing} new with risk {risk or 'low'} or above{warning}")
