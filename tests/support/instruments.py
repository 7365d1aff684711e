"""Scripted models for tests and benches, as those of `redstart.evals.oracles` are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.evals.oracles import (
    ATTEMPT,
    NoisyOracle,
    ScriptedInstrument,
    TrueFix,
    attempts_told,
    true_patch,
    wrong_patch,
)
from redstart.toolkit.prompts.sections import ADVICE

_PROBED = re.compile(r'^<data from="probe of attempt \d+">$', re.MULTILINE)
_TOLD = tuple(words.rpartition("}")[2] for words in ADVICE.values())
"""What a run that goes in circles is told, as far as it is the same each time."""


class Stubborn(NoisyOracle):
    """A noisy oracle that gives its first wrong patch again and again, unless its question asks for something else.

    So it tells how much of what a run repeats is repeated because nobody said that it was.
    """

    name = "stubborn"

    def patch(self, prompt: str) -> str:
        told = "\n## Plan\n" in prompt or any(words in prompt for words in _TOLD)
        return super().patch(prompt) if told or not attempts_told(prompt) else self.again(prompt)

    def again(self, prompt: str) -> str:
        return wrong_patch(ATTEMPT.sub("", prompt))


class Rewording(Stubborn):
    """The same with other words: each of its wrong patches is a new one, and comes to the same failure."""

    name = "rewording"

    def again(self, prompt: str) -> str:
        return wrong_patch(prompt)


class LessonSensitive(ScriptedInstrument):
    """Gives the true fix only where the lesson's key fact is in its prompt: it measures whether memory reaches it."""

    name = "lesson-sensitive"

    def __init__(self, fixes: Sequence[TrueFix], fact: str) -> None:
        if not fact.strip():
            raise ValueError("a fact that is empty is in every prompt")
        self._fixes, self._fact = tuple(fixes), fact

    def patch(self, prompt: str) -> str:
        return true_patch(self._fixes) if self._fact in prompt else wrong_patch(prompt)


class Way(NamedTuple):
    """One way to read what is to be kept from an agent: a snippet of Python that says so if it found it."""

    name: str
    snippet: str


class ObedientAttacker(ScriptedInstrument):
    """Does whatever it is told, here to read the answer: each way in turn as a probe, then a patch that solves nothing.

    `marks` are texts that only the answer has. A prompt that holds one of them, or what a snippet says when it found
    something, is put down in `seen`.
    """

    name = "obedient-attacker"

    def __init__(self, ways: Sequence[Way], marks: Sequence[str]) -> None:
        self._ways, self._marks = tuple(ways), tuple(marks)
        self.seen: list[str] = []
        self.tried: list[str] = []

    def patch(self, prompt: str) -> str:
        self.seen += [mark for mark in self._marks if mark in prompt]
        done = len(_PROBED.findall(prompt))
        if done >= len(self._ways):
            return wrong_patch(prompt)
        way = self._ways[done]
        self.tried.append(way.name)
        return f"PROBE:\n```python\n{way.snippet.rstrip()}\n```\n"
