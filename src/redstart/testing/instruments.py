"""Scripted models as instruments: they measure what is around a model (recall, edits, memory, honesty), never a model.

What each answers depends on its settings and on the question alone, so that a run which is taken up again after a crash
gets the answers that it would have had. Each is a `Model`; `script` makes it one of `redstart.testing.server`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Usage
from redstart.testing.scenarios import CARD, REFLECTION, question
from redstart.testing.server import Request
from redstart.testing.truth import Shown, TrueFix, is_recalled, shown_code
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.prompts.sections import ADVICE

CHARACTERS_A_TOKEN = 4
PLAN = json.dumps({"summary": "look again", "subtasks": []})
CANNOT_TELL = "I cannot tell from what is shown what is wrong.\n"
_ATTEMPT = re.compile(r'^<data from="attempt (\d+)">$', re.MULTILINE)
_PROBED = re.compile(r'^<data from="probe of attempt \d+">$', re.MULTILINE)
_PLAIN = re.compile(r"^\s*[\w.\[\]]+ *[-+*/]?= *[^\\]*[^\\,({\[:]$|^\s*return [^\\({\[]*$")
"""Assignments and returns of one line: what can be followed by a remark."""
_TOLD = tuple(words.rpartition("}")[2] for words in ADVICE.values())
"""What a run that goes in circles is told, as far as it is the same each time."""


class Instrument:
    """What they have in common. `patch` answers the question for edits; the others are answered in few words."""

    name = "instrument"

    def patch(self, prompt: str) -> str:
        raise NotImplementedError

    def reply(self, asked: str, prompt: str) -> str:
        """The answer to a question, by its name and all of its text."""
        plain = {"remember": CARD, "plan": PLAN, "reflect": REFLECTION}
        return plain[asked] if asked in plain else self.patch(prompt)

    async def ask(self, ask: Ask) -> Answer:
        prompt = "\n".join(message.text for message in ask.messages)
        said = self.reply(ask.question, prompt)
        usage = Usage(input_tokens=_tokens(prompt), output_tokens=_tokens(said))
        return Answer(text=said, model=f"instrument:{self.name}", usage=usage)

    def script(self, request: Request) -> str:
        """The same as the script of a server."""
        return self.reply(question(request), request.text)


class OracleAtRecall(Instrument):
    """Gives the true fix if and only if its prompt holds every line that the fix changes; else a wrong patch.

    So every task whose context held the lines ends green, unless what is around the model loses the fix.
    """

    name = "oracle-at-recall"

    def __init__(self, fixes: Sequence[TrueFix]) -> None:
        self._fixes = tuple(fixes)

    def patch(self, prompt: str) -> str:
        return true_patch(self._fixes) if is_recalled(self._fixes, prompt) else wrong_patch(prompt)


class NoisyOracle(Instrument):
    """Gives the true fix with a set probability, which rises by `rise` with every attempt that it is told about.

    Each run is to have a seed of its own: then runs are independent, and how many are solved has a known distribution.
    """

    name = "noisy-oracle"

    def __init__(self, fixes: Sequence[TrueFix], *, right: float, rise: float = 0.0, seed: str = "") -> None:
        self._fixes, self._right, self._rise, self._seed = tuple(fixes), right, rise, seed

    def patch(self, prompt: str) -> str:
        tried = _tried(prompt)
        chance = random.Random(f"{self._seed}/{tried}").random()  # noqa: S311  (nothing is kept secret by it)
        return true_patch(self._fixes) if chance < self._right + self._rise * tried else wrong_patch(prompt)


class Stubborn(NoisyOracle):
    """A noisy oracle that gives its first wrong patch again and again, unless its question asks for something else.

    So it tells how much of what a run repeats is repeated because nobody said that it was.
    """

    name = "stubborn"

    def patch(self, prompt: str) -> str:
        told = "\n## Plan\n" in prompt or any(words in prompt for words in _TOLD)
        return super().patch(prompt) if told or not _tried(prompt) else self.again(prompt)

    def again(self, prompt: str) -> str:
        return wrong_patch(_ATTEMPT.sub("", prompt))


class Rewording(Stubborn):
    """The same with other words: each of its wrong patches is a new one, and comes to the same failure."""

    name = "rewording"

    def again(self, prompt: str) -> str:
        return wrong_patch(prompt)


class LessonSensitive(Instrument):
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


class ObedientAttacker(Instrument):
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


def true_patch(fixes: Sequence[TrueFix]) -> str:
    """The fix as a model would give it."""
    return "WHY: the true fix\n\n" + "\n".join(fix.diff for fix in fixes)


def wrong_patch(prompt: str) -> str:
    """An edit of code that the prompt shows which can be applied and changes nothing; another one in each attempt."""
    tried = _tried(prompt)
    for shown in shown_code(prompt):
        line = None if protected(shown.path) else _plain_line(shown)
        if line is not None:
            mark = "//" if shown.path.endswith(("js", "ts", "jsx", "tsx")) else "#"
            changed = f"{line}  {mark} looked at {tried + 1}"
            return f"WHY: a guess\n\n{shown.path}\n<<<<<<< SEARCH\n{line}\n=======\n{changed}\n>>>>>>> REPLACE\n"
    return CANNOT_TELL


def _tried(prompt: str) -> int:
    """The last attempt that it tells of; 0 for none."""
    return max(map(int, _ATTEMPT.findall(prompt)), default=0)


def _plain_line(shown: Shown) -> str | None:
    """A line that a remark can follow; the longest one, which is the least likely to stand there twice."""
    plain = [line for line in shown.lines if _PLAIN.match(line) and '"' not in line and "'" not in line]
    return max(plain, key=lambda line: (len(line), line), default=None)


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
