"""Rerun the targets with one varied condition each: a failing test that then passes is not a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redstart.core.frozen import clip
from redstart.core.report import FIRST, CaseList, Ids, Repeat, ReproductionResult
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.run import RunState
from redstart.core.shell import Variation
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import restrict_to_targets, run_tests
from redstart.toolkit.honesty.verdict.flake_conditions import find_conditions
from redstart.toolkit.honesty.verdict.levels import MEASURES, estimate_seconds
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.suites.problems.reasons import MAX_LISTED_REASONS


async def without_flakes(run: RunState, ports: Ports, reproduction: ReproductionResult) -> ReproductionResult:
    """Remove flaky tests: a failing test that passes when one condition is varied is not a target."""
    measures = MEASURES[run.spec.verify].before
    if reproduction.trouble:
        return reproduction
    target_ids = ports.blobs.get(reproduction.targets_full).decode().splitlines()
    flaky: dict[str, tuple[str, Variation]] = {}
    repeats: list[Repeat] = []
    seconds = 0.0
    for number, (condition, variation) in enumerate(measures, 1):
        remaining = [item for item in target_ids if item not in flaky]
        if not remaining:
            break
        ports.announce(f"rerun {number} of {len(measures)}", tests=len(remaining))
        suite_run = await run_tests(run, ports, run.spec.base, remaining, variation)
        passing = find_passing_targets(remaining, suite_run.cases)
        flaky |= dict.fromkeys(sorted(passing), (condition, variation))
        repeats.append(Repeat(patched=False, varied=condition, green=len(passing), red=len(remaining) - len(passing)))
        seconds = max(seconds, suite_run.report.seconds)
    descriptions = await _name_flakes(run, ports, flaky) if flaky else ()
    expected_seconds = round(estimate_seconds(run.spec.verify, reproduction.report.seconds, seconds), 1)
    updated = reproduction.model_copy(
        update={"flaky": descriptions, "repeats": tuple(repeats), "forecast": expected_seconds}
    )
    return _leave_out(run, ports, updated, set(flaky)) if flaky else updated


async def _name_flakes(run: RunState, ports: Ports, flaky: Mapping[str, tuple[str, Variation]]) -> tuple[str, ...]:
    """Describe the first flaky tests with what each depends on."""

    async def find_passing(ids: Sequence[str], variation: Variation) -> set[str]:
        return find_passing_targets(ids, (await run_tests(run, ports, run.spec.base, ids, variation)).cases)

    conditions = await find_conditions(flaky, find_passing)
    return tuple(f"{clip(id_, 200)} (green {_describe_condition(name)})" for id_, name in conditions.items())[:FIRST]


def _describe_condition(name: str) -> str:
    return f"with another {name}" if name else "when it runs again without the other tests"


def _leave_out(run: RunState, ports: Ports, reproduction: ReproductionResult, flaky: set[str]) -> ReproductionResult:
    all_ids = ports.blobs.get(reproduction.targets_full).decode().splitlines()
    target_ids = [line for line in all_ids if line not in flaky]
    if not target_ids:
        remedy = f"every failing test is flaky: {'; '.join(reproduction.flaky[:MAX_LISTED_REASONS])}"
        return reproduction.model_copy(update={"targets": Ids(), "trouble": Problem.flaky, "remedy": remedy})
    return restrict_targets(run, ports, reproduction, target_ids)


def restrict_targets(
    run: RunState, ports: Ports, reproduction: ReproductionResult, target_ids: Sequence[str]
) -> ReproductionResult:
    """Make only these of the targets the targets, of which there is at least one."""
    cases = CaseList.model_validate_json(ports.blobs.get(reproduction.report.full)).cases
    remaining = set(target_ids)
    report = restrict_to_targets(ports, run, reproduction.report, [case for case in cases if case.id in remaining])
    target_blob = ports.blobs.put("\n".join(target_ids).encode())
    return reproduction.model_copy(
        update={"report": report, "targets": Ids.from_ids(target_ids), "targets_full": target_blob}
    )
