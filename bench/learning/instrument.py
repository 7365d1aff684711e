"""The instrument of the learning curve: right more often if its question holds its family's key fact."""

from __future__ import annotations

import json
from collections.abc import Sequence

from learning.families import Family
from redstart.evals.scripted_models import NoisyOracle, ScriptedInstrument, TrueFix
from support.scenarios import CARD

TOLD = 0.9
UNTOLD = 0.25
"""The chances that an attempt is right, with the family's key fact in the question and without."""
PLACES = ("lessons", "cards")
"""Where a verified run leaves the fact."""


class FactSensitive(ScriptedInstrument):
    """Gives the true fix with a chance that depends on whether the fact is in its question.

    The random number that decides depends only on the task and the attempt; the fact changes only the threshold. So an
    arm that shows more solves everything that the others solve, and no difference is luck.
    """

    name = "fact-sensitive"

    def __init__(self, fixes: Sequence[TrueFix], family: Family, *, seed: str, place: str) -> None:
        self._family, self._place = family, place
        self._told = NoisyOracle(fixes, success_rate=TOLD, seed=seed)
        self._untold = NoisyOracle(fixes, success_rate=UNTOLD, seed=seed)

    def patch(self, prompt: str) -> str:
        return (self._told if self._family.advice in prompt else self._untold).patch(prompt)

    def reply(self, question: str, prompt: str) -> str:
        if question != "remember":
            return super().reply(question, prompt)
        if self._place == "cards":
            return json.dumps({**json.loads(CARD), "fix": self._family.advice})
        return json.dumps({**json.loads(CARD), "when": self._family.when, "advice": self._family.advice})
