"""What static tools say of the code at hand, before it is changed."""

from __future__ import annotations

from redstart.core.finding import FindingList, Findings
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.checks.ruff import check

SHOWN = 10


async def audit(run: RunState, ports: Ports) -> Findings:
    paths = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    files = {path: text for path in sorted(paths) if (text := ports.trees.read(run.ground, path)) is not None}
    found = check(files)
    full = ports.blobs.put(FindingList(findings=tuple(found)).model_dump_json().encode()) if found else ""
    return Findings(count=len(found), first=tuple(one.brief() for one in found[:SHOWN]), full=full)
