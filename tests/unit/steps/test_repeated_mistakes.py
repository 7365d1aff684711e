"""With the same seeds, a stubborn model repeats itself less when it is told so, and a noisy model loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.progress import CourseChange, CoursePattern, Strategy
from redstart.core.run import Limits, RunState
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.evals.scripted_models import NoisyOracle, TrueFix
from redstart.steps.decide import retry
from redstart.toolkit.learning.stuck_runs import compute_outcome, count_repeated_patches
from support import rig as play
from support.instruments import Rewording, Stubborn
from support.rig import Rig, make_rig

FIX = TrueFix(play.CODE, play.BUGGY, play.BUGGY.replace(" + 1", ""))
SEEDS = range(6)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def run_with_oracle(rig: Rig, kind: type[NoisyOracle], seed: int) -> RunState:
    rig = rig.twin()
    rig.adapters = replace(rig.adapters, model=kind([FIX], success_rate=0.25, seed=f"{kind.name}/{seed}"))

    async def go() -> RunState:
        limits = Limits(attempts=5, tokens=None, usd=None)
        claim = await rig.adapters.store.claim(await rig.begin(limits=limits))
        return (await drive(rig.adapters, claim, run_inline)).state

    return asyncio.run(go())


def count_repeats(state: RunState) -> int:
    """Count the attempts that ended in the failure of an earlier attempt."""
    outcomes = [*(entry.seen for entry in state.history), compute_outcome(state)]
    failures = [(item.failing, item.signature) for item in outcomes if item.wrong is not None]
    return len(failures) - len(set(failures))


def detect_repeated_patch(run: RunState) -> CourseChange | None:
    """Detect only repeated patches, as the first version did."""
    return (
        CourseChange(pattern=CoursePattern.revisited, strategy=Strategy.plan) if count_repeated_patches(run) else None
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "replacement"), [(Stubborn, lambda run: None), (Rewording, detect_repeated_patch)])
def test_stubborn_model_repeats_fewer_mistakes_and_solves_more(rig, monkeypatch, kind, replacement):
    guided_states = [run_with_oracle(rig, kind, seed) for seed in SEEDS]
    monkeypatch.setattr(retry, "turn", replacement)
    unguided_states = [run_with_oracle(rig, kind, seed) for seed in SEEDS]
    solved_flags = [[item.result == "verified" for item in arm] for arm in (guided_states, unguided_states)]
    assert sum(solved_flags[0]) > sum(solved_flags[1])
    assert all(item >= baseline for item, baseline in zip(*solved_flags, strict=True))
    rates = [
        sum(map(count_repeats, arm)) / sum(item.now.number - 1 for item in arm)
        for arm in (guided_states, unguided_states)
    ]
    assert rates[0] < rates[1]


@pytest.mark.soak
def test_noisy_model_loses_no_solutions(rig, monkeypatch):
    results = [run_with_oracle(rig, NoisyOracle, seed).result for seed in SEEDS]
    monkeypatch.setattr(retry, "turn", lambda run: None)
    assert results == [run_with_oracle(rig, NoisyOracle, seed).result for seed in SEEDS]
