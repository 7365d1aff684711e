"""Decide on a run that ends with failing tests, but with a kept patch that fixes all tests of some cause."""

from __future__ import annotations

from collections import defaultdict

from redstart.core.frozen import clip, format_count
from redstart.core.run import Action, Decision, Result, RetryBase, RunState, Step
from redstart.core.set_aside import SetAsideSource, list_claims
from redstart.ports.bundle import Ports
from redstart.steps.decide.ending import end, time_limit_reached
from redstart.toolkit.honesty.verdict.baseline import list_failing_cases, load_baseline_cases, load_targets
from redstart.toolkit.honesty.verdict.remaining_failures import describe_failing_tests
from redstart.toolkit.honesty.verdict.set_aside import add, build_set_aside
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.learning.stuck_runs import has_gained
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.suites.suite_directory import TreeView

_ENDINGS = (Result.unsolved, Result.stuck, Result.capped)


def settle_for_part(run: RunState, ports: Ports, ending: Decision) -> Decision:
    """Prove what the kept patch fixes before the run ends, and set the other failing tests aside.

    No model is asked for that. If it cannot be proven, the run ends with all tests as targets again.
    """
    if run.has_unsolved:
        reason = f"{run.history[-1].reason}, but it could not be proven: {describe_failing_tests(run)}"
        return end(Result.unsolved, clip(reason, 600)).model_copy(update={"set_aside": list_claims(run.set_aside)})
    if ending.result not in _ENDINGS or not run.spec.set_aside_policy.allows or time_limit_reached(run):
        return ending
    keeps_patch = run.spec.keeps_gain and (run.draft is not None or has_gained(run))
    unsolved_ids = _find_unsolved(run, ports) if keeps_patch else None
    if not unsolved_ids:
        return ending
    reason = f"not fixed in {format_count(run.tries, 'attempt')}"
    entry = build_set_aside(unsolved_ids, reason, SetAsideSource.unsolved, ports.blobs)
    fixed = format_count(len(load_targets(run, ports.blobs)) - len(unsolved_ids), "failing test")
    return Decision(
        action=Action.retry,
        next=Step.apply,
        reason=clip(f"{ending.reason}; the kept patch fixes {fixed}", 200),
        set_aside=add(run.set_aside, entry, ports.blobs),
        retry_base=RetryBase.patched,
        retry_base_reason="what it fixes is proven without a model",
    )


def _find_unsolved(run: RunState, ports: Ports) -> list[str] | None:
    """Return the targets that fail with the kept patch.

    None if it fixes only some of the tests that fail for one cause, which may be a special case, or breaks a test.
    """
    report = run.now.test.report.full if run.now.test and has_gained(run) else ""
    failing_ids = {case.id for case in list_failing_cases(run, ports.blobs, report)}
    target_ids = set(load_targets(run, ports.blobs))
    view = TreeView.open(run.spec.suite, ports.trees, run.base)
    is_source = view.build_source_filter(find_protection)
    fails_by_cause: dict[str, set[bool]] = defaultdict(set)
    for case in load_baseline_cases(run, ports.blobs):
        if case.id in target_ids:
            fails_by_cause[sign(case, is_source=is_source).family].add(case.id in failing_ids)
    is_half_fixed = any(len(outcomes) > 1 for outcomes in fails_by_cause.values())
    return None if is_half_fixed or failing_ids - target_ids else sorted(failing_ids)
