"""Puts the edits on a fresh tree, all or nothing, and judges the resulting tree by policy."""

from __future__ import annotations

from redstart.core.change import Applied, EditList, Snapshot
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.patching.ladder import climb
from redstart.toolkit.patching.policy import violations

REJECTS = 5


async def apply(run: RunState, ports: Ports) -> Applied:
    edits = EditList.model_validate_json(ports.blobs.get(run.now.patch.edits)).edits if run.now.patch else ()
    climbed = climb(ports.trees, run.ground, edits)
    if climbed.snapshot is None:
        return Applied(ok=False, rejects=climbed.rejects[:REJECTS], refused=climbed.refused)
    return _judged(run, ports, climbed.snapshot, climbed.rung)


def _judged(run: RunState, ports: Ports, snapshot: Snapshot, rung: str) -> Applied:
    diff = ports.trees.diff(run.base, snapshot)
    lines = diff.decode(errors="replace").splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    rejects = violations(ports.trees.changes(run.base, snapshot), len(diff), run.spec.protect)
    return Applied(
        ok=not rejects,
        snapshot=None if rejects else snapshot,
        diff=ports.blobs.put(diff),
        rung=rung,
        rejects=rejects[:REJECTS],
        refused=bool(rejects),
        added=added,
        removed=removed,
    )
