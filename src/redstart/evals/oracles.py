"""Scripted models as instruments: they measure what is around a model (recall, edits, memory, honesty), never a model.

What each answers depends on its settings and on the question alone, so that a run which is taken up again after a crash
gets the answers that it would have had. Each is a `Model`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

from redstart.core.chat import Answer, Ask, Usage
from redstart.evals.truth import Shown, TrueFix, is_recalled, shown_code
from redstart.toolkit.patching.policy.policy import protected

CHARACTERS_A_TOKEN = 4
PLAN = json.dumps({"summary": "look again", "subtasks": []})
CARD = json.dumps(
    {"summary": "a small bug", "root_cause": "as the patch says", "fix": "as the patch does", "debug_steps": []}
)
REFLECTION = json.dumps({"root_cause": "not known", "what_failed": "the last edit", "try_next": "another one"})
CANNOT_TELL = "I cannot tell from what is shown what is wrong.\n"
ATTEMPT = re.compile(r'^<data from="attempt (\d+)">$', re.MULTILINE)
_PLAIN = re.compile(r"^\s*[\w.\[\]]+ *[-+*/]?= *[^\\]*[^\\,({\[:]$|^\s*return [^\\({\[]*$")
"""Assignments and returns of one line: what can be followed by a remark."""


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
        tried = attempts_told(prompt)
        chance = random.Random(f"{self._seed}/{tried}").random()  # noqa: S311  (nothing is kept secret by it)
        return true_patch(self._fixes) if chance < self._right + self._rise * tried else wrong_patch(prompt)


def true_patch(fixes: Sequence[TrueFix]) -> str:
    """The fix as a model would give it."""
    return "WHY: the true fix\n\n" + "\n".join(fix.diff for fix in fixes)


def wrong_patch(prompt: str) -> str:
    """An edit of code that the prompt shows which can be applied and changes nothing; another one in each attempt."""
    tried = attempts_told(prompt)
    for shown in shown_code(prompt):
        line = None if protected(shown.path) else _plain_line(shown)
        if line is not None:
            mark = "//" if shown.path.endswith(("js", "ts", "jsx", "tsx")) else "#"
            changed = f"{line}  {mark} looked at {tried + 1}"
            return f"WHY: a guess\n\n{shown.path}\n<<<<<<< SEARCH\n{line}\n=======\n{changed}\n>>>>>>> REPLACE\n"
    return CANNOT_TELL


def attempts_told(prompt: str) -> int:
    """The last attempt that it tells of; 0 for none."""
    return max(map(int, ATTEMPT.findall(prompt)), default=0)


def _plain_line(shown: Shown) -> str | None:
    """A line that a remark can follow; the longest one, which is the least likely to stand there twice."""
    plain = [line for line in shown.lines if _PLAIN.match(line) and '"' not in line and "'" not in line]
    return max(plain, key=lambda line: (len(line), line), default=None)


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
