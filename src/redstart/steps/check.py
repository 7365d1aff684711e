"""Static checks on what changed: a syntax error or a new finding goes back before any test runs."""

from __future__ import annotations

from redstart.core.change import Snapshot
from redstart.core.finding import Finding, FindingList, Findings, Severity
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.checks.ruff import check as run_ruff
from redstart.toolkit.checks.ruff import new_findings, syntax_errors

SHOWN = 10


async def check(run: RunState, ports: Ports) -> Findings:
    after = run.now.apply.snapshot if run.now.apply else None
    if after is None:
        return Findings()
    changed = [change.path for change in ports.trees.changes(run.base, after)]
    found = new_findings(_findings(ports, run.base, changed), _findings(ports, after, changed))
    blocking = [one for one in found if one.severity is Severity.error]
    broken = syntax_errors(blocking)
    fault = f"{broken[0].path}:{broken[0].line} does not parse: {broken[0].message}" if broken else ""
    full = ports.blobs.put(FindingList(findings=tuple(found)).model_dump_json().encode()) if found else ""
    return Findings(count=len(blocking), first=tuple(one.brief() for one in blocking[:SHOWN]), full=full, fault=fault)


def _findings(ports: Ports, snapshot: Snapshot, paths: list[str]) -> list[Finding]:
    return run_ruff({path: text for path in paths if (text := ports.trees.read(snapshot, path)) is not None})
