"""Runs the targets, then all, on a tree whose tests are the baseline's; and judges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redstart.core.change import Snapshot
from redstart.core.errors import StoreError
from redstart.core.report import Judged
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import baseline_cases, targets
from redstart.toolkit.honesty.verdict import judge, tampered
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.suites.execute import SuiteRun, run_suite

LONG_SUITE = 5.0
"""Seconds at the baseline above which the targets are run alone before everything is."""


async def test(run: RunState, ports: Ports) -> Judged:
    patched = run.now.apply.snapshot if run.now.apply else None
    if patched is None:
        raise StoreError("there is nothing to test: the attempt has no applied patch")
    changed = [change.path for change in ports.trees.changes(run.base, patched)]
    tree = _with_baseline_tests(run, ports, patched, changed)
    before, wanted = baseline_cases(run, ports.blobs), targets(run, ports.blobs)
    runs = 0
    if run.now.reproduce is not None and run.now.reproduce.report.seconds > LONG_SUITE:
        first = await _suite(run, ports, tree, wanted)
        runs += 1
        verdict = judge([case for case in before if case.id in set(wanted)], first.cases, wanted)
        if not verdict.honest_green:
            return Judged(report=first.report, verdict=verdict, runs=runs)
    done = await _suite(run, ports, tree)
    runs += 1
    repeats = [(await _suite(run, ports, tree, wanted)).cases for _ in range(run.spec.verify.repeats)]
    verdict = judge(
        before,
        done.cases,
        wanted,
        repeats=repeats,
        unexplained=done.unexplained,
        tampered=tampered(changed, lambda path: protected(path, run.spec.protect)),
    )
    return Judged(report=done.report, verdict=verdict, runs=runs + len(repeats))


def _with_baseline_tests(run: RunState, ports: Ports, patched: Snapshot, changed: Sequence[str]) -> Snapshot:
    """Policy has refused such changes already; the verdict does not rely on that."""
    theirs = {path: ports.trees.read(run.base, path) for path in changed if protected(path, run.spec.protect)}
    return ports.trees.write(patched, theirs) if theirs else patched


async def _suite(run: RunState, ports: Ports, tree: Snapshot, ids: Sequence[str] = ()) -> SuiteRun:
    source = set(ports.trees.files(tree))
    named = partial(sign, is_source=lambda path: path in source and not protected(path))
    return await run_suite(ports.sandbox, ports.blobs, run.spec, tree, sign=named, ids=ids)
