"""Does the reflection on an attempt reach the next attempt? The instrument has no other information.

The instrument fails on purpose, puts a unique word into its reflection, and gives the true fix only if its latest word
is in its question. The bench makes complete runs of `fix` on the rig: no process starts and no model is asked. Half of
the runs reflect in the answer that gives the edits (`--reflect never`), half in the step `reflect` (`--reflect
always`). As a control, the same runs are repeated with the reflections cut out of each question before the instrument
reads it. The figures say nothing about a model: they say that a lesson from a failure is present in the next attempt.
`--quick` does the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import _paths  # noqa: F401
from _figures import Figure, expect_equal, print_figures, report_value
from redstart.core.chat import Answer, Ask, Usage
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import Limits, Result, RunState
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import Rig, make_rig

RUNS = 20
LIMITS = Limits(attempts=3, tokens=None, usd=None)
LINE = "    return number + number + 1"
_REFLECTED = re.compile(r"^(?:ROOT CAUSE|WHAT FAILED|TRY NEXT): .*\n", re.MULTILINE)


class Forgetful:
    """A model that knows only its question. `blind` first cuts the reflections out of the question."""

    def __init__(self, seed: int, *, blind: bool) -> None:
        self._seed, self._blind = seed, blind
        self._word, self._wrong = "", 0
        self.cut = 0

    async def ask(self, ask: Ask) -> Answer:
        prompt = "\n".join(message.text for message in ask.messages)
        if self._blind:
            prompt, cut_count = _REFLECTED.subn("", prompt)
            self.cut += cut_count
        answer = self._reply(ask.question, prompt)
        return Answer(text=answer, model="instrument:forgetful", usage=Usage(input_tokens=1, output_tokens=1))

    def _reply(self, question: str, prompt: str) -> str:
        if question == "reflect":
            return json.dumps(
                {"root_cause": "it adds too much", "what_failed": "a guess", "try_next": self._create_word()}
            )
        if question != "patch":
            return {"remember": play.CARD, "plan": json.dumps({"summary": "look again"})}[question]
        if self._word and self._word in prompt:
            return play.RIGHT
        wants_reflection = "`TRY NEXT:`" in prompt
        reflection = (
            f"ROOT CAUSE: it adds too much\nWHAT FAILED: a guess\nTRY NEXT: {self._create_word()}\n"
            if wants_reflection
            else ""
        )
        self._wrong += 1
        return reflection + play.block(LINE, f"    return number + {self._seed * 100 + self._wrong + 50}")

    def _create_word(self) -> str:
        """Return a new unique word for each reflection."""
        self._word = f"word-{self._seed}-{self._wrong}"
        return self._word


async def run_fix(rig: Rig, model: Forgetful, policy: ReflectionPolicy) -> RunState:
    rig = rig.twin()
    rig.adapters = replace(rig.adapters, model=model)
    claim = await rig.adapters.store.claim(await rig.begin(limits=LIMITS, reflect=policy))
    return (await drive(rig.adapters, claim, run_inline)).state


def measure(rig: Rig, runs: int = RUNS) -> list[Figure]:
    solved = dict.fromkeys((False, True), 0)
    attempts: list[int] = []
    cut_count = 0
    for seed in range(runs):
        policy = ReflectionPolicy.always if seed % 2 else ReflectionPolicy.never
        for blind in (False, True):
            model = Forgetful(seed, blind=blind)
            state = asyncio.run(run_fix(rig, model, policy))
            solved[blind] += state.result is Result.verified
            cut_count += model.cut
            if not blind:
                attempts.append(state.now.number)
    return [
        expect_equal("reflected_solved", solved[False], runs),
        expect_equal("without_solved", solved[True], 0),
        report_value("runs", runs),
        report_value("attempts", sum(attempts) / max(len(attempts), 1)),
        report_value("lines_cut", cut_count),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rig = make_rig(Path(folder) / "snapshots")
        try:
            figures = measure(rig)
        finally:
            rig.trees.close()
    print_figures("reflection", figures)


if __name__ == "__main__":
    main()
