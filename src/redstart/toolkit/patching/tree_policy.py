"""Check the whole change of a run, from its base to a tree, against the policy."""

from __future__ import annotations

from redstart.core.change import Snapshot
from redstart.core.run import RunSpec
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.patching.policy import Violation, find_violations, is_about_packages


def find_tree_violations(
    trees: Trees, spec: RunSpec, base: Snapshot, snapshot: Snapshot, diff: bytes
) -> tuple[Violation, ...]:
    """List what the change from `base` to `snapshot`, whose diff is given, may not do in this run."""
    violations = find_violations(trees.list_changes(base, snapshot), diff, spec.protect, spec.scope, spec.tests)
    if spec.packages is None:
        return violations
    return tuple(
        item
        for item in violations
        if not is_about_packages(item.path, trees.read(base, item.path), trees.read(snapshot, item.path))
    )
