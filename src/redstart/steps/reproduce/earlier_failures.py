"""Leave out failing tests that failed before the user's branch began, if the branch broke others."""

from __future__ import annotations

from redstart.core.report import Ids, ReproductionResult
from redstart.core.run import RunState
from redstart.core.tasks import FixTask
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import run_tests
from redstart.steps.reproduce.flakes import restrict_targets
from redstart.toolkit.honesty.changes.suite_results import SuiteResults
from redstart.toolkit.suites.suite_directory import TreeView


async def without_earlier_failures(run: RunState, ports: Ports, reproduction: ReproductionResult) -> ReproductionResult:
    """Run the files of the targets where the branch began. If some of them pass there, the others are no targets."""
    start = run.spec.get_task(FixTask).branch_start
    if start is None or reproduction.trouble:
        return reproduction
    target_ids = ports.blobs.get(reproduction.targets_full).decode().splitlines()
    names = TreeView.open(run.spec.suite, ports.trees, start.snapshot).select_existing(target_ids)
    if not names:
        return reproduction
    ports.announce(f"the failing tests on {start.name}", tests=len(names))
    results = SuiteResults((await run_tests(run, ports, start.snapshot, names)).cases)
    earlier = {id_ for id_ in target_ids if results.is_red(id_)}
    if not earlier or len(earlier) == len(target_ids):
        return reproduction
    restricted = restrict_targets(run, ports, reproduction, [id_ for id_ in target_ids if id_ not in earlier])
    return restricted.model_copy(update={"already_red": Ids.from_ids(earlier)})
