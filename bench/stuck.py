"""How often does a run repeat a mistake, with and without countermeasures? Scripted models, paired by seed.

There are three instruments on the rig (no process starts, no model is asked). `stubborn` repeats its first wrong patch
unless its question asks for something else. `rewording` does the same with a patch that differs but has the same
effect. `noisy-oracle` is right by chance, whatever its question says. Each seed runs in three arms: `none` (no
countermeasure), `plan` (only another plan when the same patch comes again) and `turns` (every pattern, each with its
strategy). A mistake is repeated if an attempt ends like an earlier one: with the same patch, or in the same failure of
the same tests. The figures say nothing about a model: they describe the loop around it. `--quick` takes 10 seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import _paths  # noqa: F401
from _figures import Figure, expect_equal, print_figures, report_value
from redstart.core.progress import CourseChange, CoursePattern, Strategy
from redstart.core.run import Limits, Result, RunState
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.evals.intervals import bootstrap_difference, compute_mcnemar_p
from redstart.evals.scripted_models import NoisyOracle, TrueFix
from redstart.steps.decide import retry
from redstart.toolkit.learning.stuck_runs import compute_outcome, count_repeated_patches, turn
from support import rig as play
from support.instruments import Rewording, Stubborn
from support.rig import Rig, make_rig

FIX = TrueFix(play.CODE, play.BUGGY, play.BUGGY.replace(" + 1", ""))
RIGHT = 0.15
LIMITS = Limits(attempts=5, tokens=None, usd=None)

Turning = Callable[[RunState], CourseChange | None]


def _keep_course(run: RunState) -> CourseChange | None:
    del run
    return None


def _plan_only(run: RunState) -> CourseChange | None:
    return (
        CourseChange(pattern=CoursePattern.revisited, strategy=Strategy.plan) if count_repeated_patches(run) else None
    )


ARMS: dict[str, Turning] = {"none": _keep_course, "plan": _plan_only, "turns": turn}


class Course(NamedTuple):
    """The course of one run."""

    solved: bool
    attempts: int
    repeats: int

    @property
    def rate(self) -> float:
        """The share of attempts that repeated a mistake, among those that could."""
        return self.repeats / max(self.attempts - 1, 1)


def run_course(rig: Rig, model: NoisyOracle, change_course: Turning) -> Course:
    """Drive one run to its end, with this way to change its course."""
    rig = rig.twin()
    rig.adapters = replace(rig.adapters, model=model)
    original, retry.turn = retry.turn, change_course
    try:
        state = asyncio.run(_drive_rig(rig))
    finally:
        retry.turn = original
    attempts = [*(entry.seen for entry in state.history), compute_outcome(state)]
    failures = [(item.failing, item.signature) for item in attempts if item.wrong is not None]
    return Course(state.result is Result.verified, state.now.number, len(failures) - len(set(failures)))


async def _drive_rig(rig: Rig) -> RunState:
    claim = await rig.adapters.store.claim(await rig.begin(limits=LIMITS))
    return (await drive(rig.adapters, claim, run_inline)).state


def measure_instrument(rig: Rig, kind: type[NoisyOracle], seeds: int) -> list[Figure]:
    """Measure one instrument and return its figures."""
    arms = {
        name: [
            run_course(rig, kind([FIX], success_rate=RIGHT, seed=f"{kind.name}/{seed}"), change_course)
            for seed in range(seeds)
        ]
        for name, change_course in ARMS.items()
    }
    turn_runs, figures = arms["turns"], list[Figure]()
    for name, runs in arms.items():
        chances = sum(run.attempts - 1 for run in runs)
        rate = sum(run.repeats for run in runs) / max(chances, 1)
        figures.append(report_value(f"{kind.name}_repeat_rate_{name}", rate))
        figures.append(report_value(f"{kind.name}_solved_{name}", sum(run.solved for run in runs) / seeds))
    for name in ("none", "plan"):
        reduction = bootstrap_difference([item.rate for item in turn_runs], [other.rate for other in arms[name]])
        lost_count = sum(a.solved and not b.solved for a, b in zip(arms[name], turn_runs, strict=True))
        won_count = sum(b.solved and not a.solved for a, b in zip(arms[name], turn_runs, strict=True))
        print(
            f"{kind.name}, {seeds} pairs: repeat rate of a run lower than with {name} by {reduction.words}; "
            f"solved only with turns {won_count}, only with {name} {lost_count}, p = "
            f"{compute_mcnemar_p(won_count, lost_count):.2g}"
        )
        figures.append(expect_equal(f"{kind.name}_lost_against_{name}", lost_count, 0))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    seeds = 10 if parser.parse_args().quick else 60
    with tempfile.TemporaryDirectory() as folder:
        rig = make_rig(Path(folder) / "snapshots")
        try:
            figures = [
                item for kind in (Stubborn, Rewording, NoisyOracle) for item in measure_instrument(rig, kind, seeds)
            ]
        finally:
            rig.trees.close()
    print_figures("stuck", figures)


if __name__ == "__main__":
    main()
