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
from _figures import Figure, exactly, print_figures, told
from redstart.core.course import CourseChange, CoursePattern, Strategy
from redstart.core.run import Limits, Result, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.evals.intervals import mcnemar, paired_bootstrap
from redstart.evals.oracles import NoisyOracle, TrueFix
from redstart.steps.decide import retry
from redstart.toolkit.learning.stuck import repeated, seen, turn
from support import rig as play
from support.instruments import Rewording, Stubborn
from support.rig import Rig, make_rig

FIX = TrueFix(play.CODE, play.BUGGY, play.BUGGY.replace(" + 1", ""))
RIGHT = 0.15
LIMITS = Limits(attempts=5, tokens=None, usd=None)

Turning = Callable[[RunState], CourseChange | None]


def _nothing(run: RunState) -> CourseChange | None:
    del run
    return None


def _plan_only(run: RunState) -> CourseChange | None:
    return CourseChange(pattern=CoursePattern.revisited, strategy=Strategy.plan) if repeated(run) else None


ARMS: dict[str, Turning] = {"none": _nothing, "plan": _plan_only, "turns": turn}


class Course(NamedTuple):
    """The course of one run."""

    solved: bool
    attempts: int
    repeats: int

    @property
    def rate(self) -> float:
        """The share of attempts that repeated a mistake, among those that could."""
        return self.repeats / max(self.attempts - 1, 1)


def course(rig: Rig, model: NoisyOracle, turning: Turning) -> Course:
    """Drive one run to its end, with this way to change its course."""
    rig = rig.twin()
    rig.adapters = replace(rig.adapters, model=model)
    usual, retry.turn = retry.turn, turning
    try:
        ended = asyncio.run(_driven(rig))
    finally:
        retry.turn = usual
    every = [*(entry.seen for entry in ended.history), seen(ended)]
    wrong = [(item.failing, item.signature) for item in every if item.wrong is not None]
    return Course(ended.result is Result.verified, ended.now.number, len(wrong) - len(set(wrong)))


async def _driven(rig: Rig) -> RunState:
    claim = await rig.adapters.store.claim(await rig.begin(limits=LIMITS))
    return (await drive(rig.adapters, claim, inline)).state


def measured(rig: Rig, kind: type[NoisyOracle], seeds: int) -> list[Figure]:
    """Measure one instrument and return its figures."""
    arms = {
        name: [course(rig, kind([FIX], right=RIGHT, seed=f"{kind.name}/{seed}"), turning) for seed in range(seeds)]
        for name, turning in ARMS.items()
    }
    now, figures = arms["turns"], list[Figure]()
    for name, runs in arms.items():
        chances = sum(run.attempts - 1 for run in runs)
        rate = sum(run.repeats for run in runs) / max(chances, 1)
        figures.append(told(f"{kind.name}_repeat_rate_{name}", rate))
        figures.append(told(f"{kind.name}_solved_{name}", sum(run.solved for run in runs) / seeds))
    for name in ("none", "plan"):
        fewer = paired_bootstrap([item.rate for item in now], [arm.rate for arm in arms[name]])
        lost = sum(a.solved and not b.solved for a, b in zip(arms[name], now, strict=True))
        won = sum(b.solved and not a.solved for a, b in zip(arms[name], now, strict=True))
        print(
            f"{kind.name}, {seeds} pairs: repeat rate of a run lower than with {name} by {fewer.words}; "
            f"solved only with turns {won}, only with {name} {lost}, p = {mcnemar(won, lost):.2g}"
        )
        figures.append(exactly(f"{kind.name}_lost_against_{name}", lost, 0))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    seeds = 10 if parser.parse_args().quick else 60
    with tempfile.TemporaryDirectory() as folder:
        rig = make_rig(Path(folder) / "snapshots")
        try:
            figures = [item for kind in (Stubborn, Rewording, NoisyOracle) for item in measured(rig, kind, seeds)]
        finally:
            rig.trees.close()
    print_figures("stuck", figures)


if __name__ == "__main__":
    main()
