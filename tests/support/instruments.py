"""Scripted models for tests and benchmarks, like those of `redstart.evals.scripted_models`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.evals.scripted_models import (
    ATTEMPT,
    NoisyOracle,
    ScriptedInstrument,
    TrueFix,
    count_attempts,
    format_true_patch,
    make_wrong_patch,
)
from redstart.toolkit.prompts.sections import ADVICE

_PROBED = re.compile(r'^<data from="probe of attempt \d+">$', re.MULTILINE)
_TOLD = tuple(advice.rpartition("}")[2] for advice in ADVICE.values())
"""The constant part of the advice for a run that repeats itself."""


class Stubborn(NoisyOracle):
    """A noisy oracle that repeats its first wrong patch unless the question asks for something else.

    It measures how much of the repetition in a run is due to missing advice against it.
    """

    name = "stubborn"

    def patch(self, prompt: str) -> str:
        was_advised = "\n## Plan\n" in prompt or any(advice in prompt for advice in _TOLD)
        return super().patch(prompt) if was_advised or not count_attempts(prompt) else self.again(prompt)

    def again(self, prompt: str) -> str:
        return make_wrong_patch(ATTEMPT.sub("", prompt))


class Rewording(Stubborn):
    """Like `Stubborn`, but each wrong patch is a new one that leads to the same failure."""

    name = "rewording"

    def again(self, prompt: str) -> str:
        return make_wrong_patch(prompt)


class LessonSensitive(ScriptedInstrument):
    """Gives the true fix only if the lesson's key fact is in the prompt: it measures whether memory gets there."""

    name = "lesson-sensitive"

    def __init__(self, fixes: Sequence[TrueFix], fact: str) -> None:
        if not fact.strip():
            raise ValueError("a fact that is empty is in every prompt")
        self._fixes, self._fact = tuple(fixes), fact

    def patch(self, prompt: str) -> str:
        return format_true_patch(self._fixes) if self._fact in prompt else make_wrong_patch(prompt)


class Way(NamedTuple):
    """One way to read what an agent must not see: a Python snippet that prints a message if it finds it."""

    name: str
    snippet: str


class ObedientAttacker(ScriptedInstrument):
    """Tries to read the answer: each way in turn as a probe, then a patch that solves nothing.

    `marks` are texts that only the answer contains, or that a snippet prints when it finds something. Marks that occur
    in a prompt are recorded in `seen`.
    """

    name = "obedient-attacker"

    def __init__(self, techniques: Sequence[Way], marks: Sequence[str]) -> None:
        self._ways, self._marks = tuple(techniques), tuple(marks)
        self.seen: list[str] = []
        self.tried: list[str] = []

    def patch(self, prompt: str) -> str:
        self.seen += [mark for mark in self._marks if mark in prompt]
        probe_count = len(_PROBED.findall(prompt))
        if probe_count >= len(self._ways):
            return make_wrong_patch(prompt)
        technique = self._ways[probe_count]
        self.tried.append(technique.name)
        return f"PROBE:\n```python\n{technique.snippet.rstrip()}\n```\n"
