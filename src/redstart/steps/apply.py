"""Apply the edits to a fresh tree, all or nothing, and check the resulting tree against policy."""

from __future__ import annotations

from redstart.core.change import ApplyResult, EditList, EditRejection, Snapshot
from redstart.core.frozen import clip
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.patching.ladder import LadderResult, apply_to_snapshot
from redstart.toolkit.patching.policy import Protection
from redstart.toolkit.patching.tree_policy import find_tree_violations

REJECTS = 5
MAX_RECORDED_EDITS = 20
MAX_TEST_CHANGES = 10
"""Maximum tests that a patch may propose to change: a person must review each."""
PATH, REASON = 200, 400


async def apply(run: RunState, ports: Ports) -> ApplyResult:
    if run.now.patch is None and run.draft is not None:
        return _judge_snapshot(run, ports, _draft(run, ports, run.draft), LadderResult(None))
    if run.now.patch is not None and run.now.patch.tree is not None:
        return _judge_snapshot(run, ports, run.now.patch.tree, LadderResult(None))
    edits = EditList.model_validate_json(ports.blobs.get(run.now.patch.edits)).edits if run.now.patch else ()
    result = apply_to_snapshot(ports.trees, run.workspace, edits)
    if result.snapshot is None:
        return ApplyResult(
            ok=False,
            rungs=result.edit_records[:MAX_RECORDED_EDITS],
            fits=result.fitting_edits[:MAX_RECORDED_EDITS],
            rejects=_clip_rejects(result.rejects),
            refused=result.refused,
        )
    return _judge_snapshot(run, ports, result.snapshot, result)


def _draft(run: RunState, ports: Ports, draft: Snapshot) -> Snapshot:
    """Combine the current program with the new tests, which replace its own."""
    trees, base_files = ports.trees, set(ports.trees.list_files(run.base))
    test_paths = {path for path in (*base_files, *trees.list_files(draft)) if is_test_path(path)}
    return trees.write(draft, {path: trees.read(run.base, path) if path in base_files else None for path in test_paths})


def _judge_snapshot(run: RunState, ports: Ports, snapshot: Snapshot, result: LadderResult) -> ApplyResult:
    diff = ports.trees.diff(run.base, snapshot)
    lines = diff.decode(errors="replace").splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    policy_violations = find_tree_violations(ports.trees, run.spec, run.base, snapshot, diff)
    proposed_paths = [violation.path for violation in policy_violations if violation.protection is Protection.test]
    if run.now.patch is not None and run.now.patch.test_change and len(proposed_paths) <= MAX_TEST_CHANGES:
        policy_violations = tuple(
            violation for violation in policy_violations if violation.protection is not Protection.test
        )
    else:
        proposed_paths = []
    rejects = tuple(EditRejection(path=violation.path, reason=violation.reason) for violation in policy_violations)
    return ApplyResult(
        ok=not rejects,
        snapshot=None if rejects else snapshot,
        diff=ports.blobs.put(diff),
        rung=result.fit,
        rungs=result.edit_records[:MAX_RECORDED_EDITS],
        rejects=_clip_rejects(rejects),
        refused=bool(rejects),
        added=added,
        removed=removed,
        proposes=() if rejects else tuple(proposed_paths),
    )


def _clip_rejects(rejects: tuple[EditRejection, ...]) -> tuple[EditRejection, ...]:
    """Return as many rejections as the state can hold, clipped: the model chooses the length of a path."""
    return tuple(
        reject.model_copy(update={"path": clip(reject.path, PATH), "reason": clip(reject.reason, REASON)})
        for reject in rejects[:REJECTS]
    )
