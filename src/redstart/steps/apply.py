"""Apply the edits to a fresh tree, all or nothing, and check the resulting tree against policy."""

from __future__ import annotations

from redstart.core.change import ApplyResult, EditList, EditRejection, Snapshot
from redstart.core.noun import clip
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.patching.ladder import LadderResult, climb
from redstart.toolkit.patching.policy import Protection, is_about_packages, violations

REJECTS = 5
RUNGS = 20
PROPOSED = 10
"""Maximum tests that a patch may propose to change: a person must review each."""
PATH, REASON = 200, 400


async def apply(run: RunState, ports: Ports) -> ApplyResult:
    if run.now.patch is None and run.draft is not None:
        return _judged(run, ports, _draft(run, ports, run.draft), LadderResult(None))
    edits = EditList.model_validate_json(ports.blobs.get(run.now.patch.edits)).edits if run.now.patch else ()
    climbed = climb(ports.trees, run.ground, edits)
    if climbed.snapshot is None:
        return ApplyResult(
            ok=False,
            rungs=climbed.rungs[:RUNGS],
            fits=climbed.fits[:RUNGS],
            rejects=_first(climbed.rejects),
            refused=climbed.refused,
        )
    return _judged(run, ports, climbed.snapshot, climbed)


def _draft(run: RunState, ports: Ports, draft: Snapshot) -> Snapshot:
    """Combine the current program with the new tests, which replace its own."""
    trees, wanted = ports.trees, set(ports.trees.files(run.base))
    theirs = {path for path in (*wanted, *trees.files(draft)) if is_test_path(path)}
    return trees.write(draft, {path: trees.read(run.base, path) if path in wanted else None for path in theirs})


def _judged(run: RunState, ports: Ports, snapshot: Snapshot, climbed: LadderResult) -> ApplyResult:
    diff = ports.trees.diff(run.base, snapshot)
    lines = diff.decode(errors="replace").splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    spec = run.spec
    against = violations(ports.trees.changes(run.base, snapshot), diff, spec.protect, spec.scope, spec.tests)
    if spec.packages is not None:
        read = ports.trees.read
        against = tuple(
            violation
            for violation in against
            if not is_about_packages(violation.path, read(run.base, violation.path), read(snapshot, violation.path))
        )
    proposed = [violation.path for violation in against if violation.protection is Protection.test]
    if run.now.patch is not None and run.now.patch.test_change and len(proposed) <= PROPOSED:
        against = tuple(violation for violation in against if violation.protection is not Protection.test)
    else:
        proposed = []
    rejects = tuple(EditRejection(path=violation.path, reason=violation.reason) for violation in against)
    return ApplyResult(
        ok=not rejects,
        snapshot=None if rejects else snapshot,
        diff=ports.blobs.put(diff),
        rung=climbed.rung,
        rungs=climbed.rungs[:RUNGS],
        rejects=_first(rejects),
        refused=bool(rejects),
        added=added,
        removed=removed,
        proposes=() if rejects else tuple(proposed),
    )


def _first(rejects: tuple[EditRejection, ...]) -> tuple[EditRejection, ...]:
    """Return as many rejections as the state can hold, clipped: the model chooses the length of a path."""
    return tuple(
        reject.model_copy(update={"path": clip(reject.path, PATH), "reason": clip(reject.reason, REASON)})
        for reject in rejects[:REJECTS]
    )
