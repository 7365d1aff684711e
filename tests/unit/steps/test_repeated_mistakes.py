"""With the same seeds, a stubborn model repeats itself less when it is told so, and a noisy model loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.course import CourseChange, CoursePattern, Strategy
from redstart.core.run import Limits, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.evals.oracles import NoisyOracle, TrueFix
from redstart.steps.decide import retry
from redstart.toolkit.learning.stuck import repeated, seen
from support import rig as play
from support.instruments import Rewording, Stubborn
from support.rig import Rig, make_rig

FIX = TrueFix(play.CODE, play.BUGGY, play.BUGGY.replace(" + 1", ""))
SEEDS = range(6)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def ended(rig: Rig, kind: type[NoisyOracle], seed: int) -> RunState:
    rig = rig.twin()
    rig.adapters = replace(rig.adapters, model=kind([FIX], right=0.25, seed=f"{kind.name}/{seed}"))

    async def go() -> RunState:
        limits = Limits(attempts=5, tokens=None, usd=None)
        claim = await rig.adapters.store.claim(await rig.begin(limits=limits))
        return (await drive(rig.adapters, claim, inline)).state

    return asyncio.run(go())


def repeats(state: RunState) -> int:
    """Count the attempts that ended in the failure of an earlier attempt."""
    every = [*(entry.seen for entry in state.history), seen(state)]
    wrong = [(item.failing, item.signature) for item in every if item.wrong is not None]
    return len(wrong) - len(set(wrong))


def only_a_plan(run: RunState) -> CourseChange | None:
    """Detect only repeated patches, as the first version did."""
    return CourseChange(pattern=CoursePattern.revisited, strategy=Strategy.plan) if repeated(run) else None


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "otherwise"), [(Stubborn, lambda run: None), (Rewording, only_a_plan)])
def test_a_stubborn_model_repeats_its_mistakes_less_and_solves_more(rig, monkeypatch, kind, otherwise):
    told = [ended(rig, kind, seed) for seed in SEEDS]
    monkeypatch.setattr(retry, "turn", otherwise)
    untold = [ended(rig, kind, seed) for seed in SEEDS]
    solved = [[item.result == "verified" for item in arm] for arm in (told, untold)]
    assert sum(solved[0]) > sum(solved[1])
    assert all(item >= other for item, other in zip(*solved, strict=True))
    rates = [sum(map(repeats, arm)) / sum(item.now.number - 1 for item in arm) for arm in (told, untold)]
    assert rates[0] < rates[1]


@pytest.mark.soak
def test_a_noisy_model_solves_what_it_solved(rig, monkeypatch):
    told = [ended(rig, NoisyOracle, seed).result for seed in SEEDS]
    monkeypatch.setattr(retry, "turn", lambda run: None)
    assert told == [ended(rig, NoisyOracle, seed).result for seed in SEEDS]
