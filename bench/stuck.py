"""How often does a run repeat a mistake, with and without what is done about it? Scripted models, paired by seed.

Two instruments on the rig (no process is started, no model is asked): `stubborn` gives its first wrong patch again
unless its question asks for something else, `noisy-oracle` is right by chance whatever it is told. Each seed runs in
three arms: `none` (nothing is done), `plan` (another plan when the same patch comes again, and nothing else) and
`turns` (every pattern, each with its strategy). A mistake is repeated where an attempt brings the patch of an earlier
one. It is no result of a model: it says what the loop around one does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from redstart.core.course import Pattern, Strategy, Turn
from redstart.core.run import Limits, Result, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.evals.compare import mcnemar, paired_bootstrap
from redstart.steps import decide
from redstart.testing import rig as play
from redstart.testing.instruments import NoisyOracle, Stubborn
from redstart.testing.rig import Rig, make_rig
from redstart.testing.truth import TrueFix
from redstart.toolkit.learning.stuck import repeated, turn

FIX = TrueFix(play.CODE, play.BUGGY, play.BUGGY.replace(" + 1", ""))
RIGHT = 0.15
LIMITS = Limits(iterations=5, tokens=None, usd=None)

Turning = Callable[[RunState], Turn | None]


def _nothing(run: RunState) -> Turn | None:
    del run
    return None


def _plan_only(run: RunState) -> Turn | None:
    return Turn(pattern=Pattern.revisited, strategy=Strategy.plan) if repeated(run) else None


ARMS: dict[str, Turning] = {"none": _nothing, "plan": _plan_only, "turns": turn}


class Course(NamedTuple):
    """How one run went."""

    solved: bool
    attempts: int
    repeats: int

    @property
    def rate(self) -> float:
        """Of the attempts that could repeat one, those that did."""
        return self.repeats / max(self.attempts - 1, 1)


def course(rig: Rig, model: NoisyOracle, turning: Turning) -> Course:
    """One run to its end, with that way to deal with circles."""
    rig = rig.twin()
    rig.adapters = replace(rig.adapters, model=model)
    usual, decide.turn = decide.turn, turning
    try:
        ended = asyncio.run(_driven(rig))
    finally:
        decide.turn = usual
    patches = [one.fingerprint for one in ended.history if one.fingerprint]
    patches += [ended.now.patch.fingerprint] if ended.now.patch and ended.now.patch.fingerprint else []
    return Course(ended.result is Result.verified, ended.now.number, len(patches) - len(set(patches)))


async def _driven(rig: Rig) -> RunState:
    claim = await rig.adapters.store.claim(await rig.begin(limits=LIMITS))
    return (await drive(rig.adapters, claim, inline)).state


def measured(rig: Rig, kind: type[NoisyOracle], seeds: int) -> dict[str, object]:
    """The figures of one instrument."""
    arms = {
        name: [course(rig, kind([FIX], right=RIGHT, seed=f"{kind.name}/{seed}"), turning) for seed in range(seeds)]
        for name, turning in ARMS.items()
    }
    now = arms["turns"]
    told: dict[str, object] = {}
    for name, runs in arms.items():
        told[f"repeat_rate_{name}"] = round(sum(one.repeats for one in runs) / sum(one.attempts - 1 for one in runs), 3)
        told[f"solved_{name}"] = sum(one.solved for one in runs)
    for name in ("none", "plan"):
        gain = paired_bootstrap([one.rate for one in now], [one.rate for one in arms[name]])
        lost = sum(a.solved and not b.solved for a, b in zip(arms[name], now, strict=True))
        won = sum(b.solved and not a.solved for a, b in zip(arms[name], now, strict=True))
        told[f"fewer_repeats_than_{name}"] = [round(gain.value, 3), round(gain.low, 3), round(gain.high, 3)]
        told[f"solved_against_{name}"] = {"won": won, "lost": lost, "p": round(mcnemar(won, lost), 4)}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rig = make_rig(Path(folder) / "snapshots")
        try:
            found = {kind.name: measured(rig, kind, asked.seeds) for kind in (Stubborn, NoisyOracle)}
        finally:
            rig.trees.close()
    print(json.dumps({"bench": "stuck", "seeds": asked.seeds, "attempts": LIMITS.iterations, **found}))


if __name__ == "__main__":
    main()
