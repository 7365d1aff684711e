"""Compare patches that all pass: do they behave differently for an input that no test checks?"""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Snapshot
from redstart.core.run import RunState
from redstart.core.shell import Completed
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.examination import BehaviorDifference, GreenPatch
from redstart.toolkit.honesty.verdict.baseline import load_baseline_cases, load_targets
from redstart.toolkit.languages.registry import find_runner_language
from redstart.toolkit.suites.execute import build_execution, load_environment
from redstart.toolkit.suites.request import SuiteRequest


async def find_difference(run: RunState, ports: Ports, trees: Sequence[Snapshot]) -> BehaviorDifference | None:
    """Find an input for which these trees give different results; None if there is none, or none can be compared."""
    spec = run.suited
    language = find_runner_language(spec.suite.runner)
    if language is None or language.green_checks is None:
        return None
    patch = GreenPatch(
        base=run.base,
        patched=trees[0],
        suite=spec.suite,
        environment=load_environment(ports.blobs, spec),
        targets=load_targets(run, ports.blobs),
        before=load_baseline_cases(run, ports.blobs),
        nearby=(),
        changed=(),
        seed=f"{run.run_id}/{run.base.tree}",
    )
    return await language.green_checks.find_difference(patch, trees, _TreeRuns(run, ports))


class _TreeRuns:
    """Runs commands on trees for the comparison (`CommandRuns`)."""

    def __init__(self, run: RunState, ports: Ports) -> None:
        self._spec, self._ports = run.suited, ports

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        ports, spec = self._ports, self._spec
        ports.announce(activity)
        return await ports.sandbox.run(build_execution(spec, tree, load_environment(ports.blobs, spec), request))

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return self._ports.trees.list_files(tree)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._ports.trees.read(tree, path)
