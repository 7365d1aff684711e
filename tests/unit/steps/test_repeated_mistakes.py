"""With the same seeds a stubborn model repeats itself less where it is told, and a noisy one loses nothing by it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.run import Limits, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.steps import decide
from redstart.testing import rig as play
from redstart.testing.instruments import NoisyOracle, Stubborn
from redstart.testing.rig import Rig, make_rig
from redstart.testing.truth import TrueFix

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
        limits = Limits(iterations=5, tokens=None, usd=None)
        claim = await rig.adapters.store.claim(await rig.begin(limits=limits))
        return (await drive(rig.adapters, claim, inline)).state

    return asyncio.run(go())


def repeats(state: RunState) -> int:
    last = [state.now.patch.fingerprint] if state.now.patch else []
    patches = [one.fingerprint for one in state.history] + last
    return len(patches) - len(set(patches))


def test_a_stubborn_model_repeats_itself_less_and_solves_more(rig, monkeypatch):
    told = [ended(rig, Stubborn, seed) for seed in SEEDS]
    monkeypatch.setattr(decide, "turn", lambda run: None)
    untold = [ended(rig, Stubborn, seed) for seed in SEEDS]
    assert sum(map(repeats, told)) < sum(map(repeats, untold))
    assert all(repeats(one) <= repeats(other) for one, other in zip(told, untold, strict=True))
    solved = [[one.result == "verified" for one in arm] for arm in (told, untold)]
    assert sum(solved[0]) > sum(solved[1])
    assert all(one >= other for one, other in zip(*solved, strict=True))


def test_a_noisy_model_solves_what_it_solved(rig, monkeypatch):
    told = [ended(rig, NoisyOracle, seed).result for seed in SEEDS]
    monkeypatch.setattr(decide, "turn", lambda run: None)
    assert told == [ended(rig, NoisyOracle, seed).result for seed in SEEDS]
