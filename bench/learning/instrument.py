"""The instrument of the learning curve: right more often where its question holds what its family teaches."""

from __future__ import annotations

import json
from collections.abc import Sequence

from learning.families import Family
from redstart.evals.oracles import NoisyOracle, ScriptedInstrument, TrueFix
from support.scenarios import CARD

TOLD = 0.9
UNTOLD = 0.25
"""The chance that an attempt is right, with the family's key fact in the question and without."""
PLACES = ("lessons", "cards")
"""Where a run that was verified leaves the fact."""


class FactSensitive(ScriptedInstrument):
    """Gives the true fix with a chance that depends on whether the fact is in its question.

    The number that decides is one of the task and the attempt alone: what is told changes only what it is compared
    with. So an arm that is told more solves whatever the others solve, and nothing differs by luck.
    """

    name = "fact-sensitive"

    def __init__(self, fixes: Sequence[TrueFix], family: Family, *, seed: str, place: str) -> None:
        self._family, self._place = family, place
        self._told = NoisyOracle(fixes, right=TOLD, seed=seed)
        self._untold = NoisyOracle(fixes, right=UNTOLD, seed=seed)

    def patch(self, prompt: str) -> str:
        return (self._told if self._family.advice in prompt else self._untold).patch(prompt)

    def reply(self, asked: str, prompt: str) -> str:
        if asked != "remember":
            return super().reply(asked, prompt)
        if self._place == "cards":
            return json.dumps({**json.loads(CARD), "fix": self._family.advice})
        return json.dumps({**json.loads(CARD), "when": self._family.when, "advice": self._family.advice})
