"""Rerun the targets with one varied condition each: a failing test that then passes is not a target."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.noun import clip
from redstart.core.report import FIRST, CaseList, Ids, Repeat, ReproductionResult
from redstart.core.report import ReproductionProblem as Problem
from redstart.core.run import RunState
from redstart.core.shell import Variation
from redstart.ports.bundle import Ports
from redstart.steps.reproduce.baseline import about_targets, run_tests
from redstart.toolkit.honesty.verdict.levels import MEASURES, forecast
from redstart.toolkit.honesty.verdict.verdict import green_among
from redstart.toolkit.suites.problems.reasons import SAID


async def without_flakes(run: RunState, ports: Ports, found: ReproductionResult) -> ReproductionResult:
    """Remove flaky tests: a failing test that passes when one condition is varied is not a target."""
    measures = MEASURES[run.spec.verify].before
    if found.trouble:
        return found
    wanted = ports.blobs.get(found.targets_full).decode().splitlines()
    flaky: dict[str, tuple[str, Variation]] = {}
    repeats: list[Repeat] = []
    seconds = 0.0
    for number, (varied, vary) in enumerate(measures, 1):
        left = [item for item in wanted if item not in flaky]
        if not left:
            break
        ports.announce(f"rerun {number} of {len(measures)}", tests=len(left))
        done = await run_tests(run, ports, run.spec.base, left, vary)
        green = green_among(left, done.cases)
        flaky |= dict.fromkeys(sorted(green), (varied, vary))
        repeats.append(Repeat(patched=False, varied=varied, green=len(green), red=len(left) - len(green)))
        seconds = max(seconds, done.report.seconds)
    told = await _name_flakes(run, ports, flaky) if flaky else ()
    took = round(forecast(run.spec.verify, found.report.seconds, seconds), 1)
    proven = found.model_copy(update={"flaky": told, "repeats": tuple(repeats), "forecast": took})
    return _leave_out(run, ports, proven, set(flaky)) if flaky else proven


async def _name_flakes(run: RunState, ports: Ports, flaky: Mapping[str, tuple[str, Variation]]) -> tuple[str, ...]:
    """Describe the first flaky tests with what each depends on.

    A rerun differs from the first run not only in the varied condition: the other tests are left out, chance plays a
    part, and the hash seed differs too. So the tests run with nothing varied, then with only the hash seed varied.
    """
    again = await run_tests(run, ports, run.spec.base, sorted(flaky))
    whens = {id_: f"with another {name}" for id_, (name, _) in flaky.items()}
    by_chance = green_among(flaky, again.cases)
    whens |= dict.fromkeys(by_chance, "when it runs again without the other tests")
    for seed in sorted({vary.hash_seed for _, vary in flaky.values() if vary != Variation(hash_seed=vary.hash_seed)}):
        alike = sorted(id_ for id_, (_, vary) in flaky.items() if vary.hash_seed == seed and id_ not in by_chance)
        if alike:
            hashed = await run_tests(run, ports, run.spec.base, alike, Variation(hash_seed=seed))
            whens |= dict.fromkeys(green_among(alike, hashed.cases), "with another hash seed")
    return tuple(f"{clip(id_, 200)} (green {when})" for id_, when in whens.items())[:FIRST]


def _leave_out(run: RunState, ports: Ports, found: ReproductionResult, flaky: set[str]) -> ReproductionResult:
    every = CaseList.model_validate_json(ports.blobs.get(found.report.full)).cases
    wanted = [line for line in ports.blobs.get(found.targets_full).decode().splitlines() if line not in flaky]
    if not wanted:
        remedy = f"every failing test is flaky: {'; '.join(found.flaky[:SAID])}"
        return found.model_copy(update={"targets": Ids(), "trouble": Problem.flaky, "remedy": remedy})
    left = set(wanted)
    report = about_targets(ports, run, found.report, [case for case in every if case.id in left])
    kept = ports.blobs.put("\n".join(wanted).encode())
    return found.model_copy(update={"report": report, "targets": Ids.of(wanted), "targets_full": kept})
