"""Scripted models as instruments: they measure what surrounds a model (recall, edits, memory, honesty), never a model.

Their answers depend only on their settings and the question, so that a run that continues after a crash gets the same
answers. Each is a `Model`.
"""

from __future__ import annotations

import difflib
import json
import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Usage
from redstart.toolkit.patching.policy import find_protection

_PASSAGE = re.compile(
    r'^<data from="(?P<path>[^"]+?)(?: lines (?P<start>\d+)-(?P<end>\d+))?">\n(?P<text>.*?)\n?</data>$',
    re.MULTILINE | re.DOTALL,
)
_TAG = re.compile(r"<(/?)(data)\b", re.IGNORECASE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NO_END = "\\ No newline at end of file\n"


class LineSpan(NamedTuple):
    """First and last line of a span in a file, counted from 1, inclusive."""

    start: int
    end: int


class TrueFix(NamedTuple):
    """One file before and after the fix; empty if the file does not exist then."""

    path: str
    before: str
    after: str

    @property
    def needed(self) -> tuple[LineSpan, ...]:
        """The lines that the fix changes or removes; if it only adds, those on either side. Empty for a new file."""
        return find_needed_lines(self.before, self.after)

    @property
    def diff(self) -> str:
        """The fix as a unified diff of this file."""
        # Count lines as diffs do: a form feed does not end a line.
        line_lists = _LINE.findall(self.before), _LINE.findall(self.after)
        old, new = (
            f"a/{self.path}" if line_lists[0] else "/dev/null",
            f"b/{self.path}" if line_lists[1] else "/dev/null",
        )
        lines = difflib.unified_diff(*line_lists, fromfile=old, tofile=new)
        return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)


class PromptPassage(NamedTuple):
    """A passage of a file in a prompt."""

    path: str
    span: LineSpan
    lines: frozenset[str]


def find_needed_lines(before: str, after: str) -> tuple[LineSpan, ...]:
    """Find the lines that a fix needs; see `TrueFix.needed`."""
    old, new = before.splitlines(), after.splitlines()
    spans: list[LineSpan] = []
    for tag, start, end, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("replace", "delete"):
            spans.append(LineSpan(start + 1, end))
        elif tag == "insert" and old:
            spans.append(LineSpan(max(start, 1), min(start + 1, len(old))))
    return tuple(spans)


def find_passages(prompt: str) -> list[PromptPassage]:
    """Find the passages of files in a prompt, in order. Other data in a prompt has a different kind of name."""
    passages: list[PromptPassage] = []
    for match in _PASSAGE.finditer(prompt):
        lines = frozenset(line.rstrip() for line in match["text"].splitlines())
        span = LineSpan(int(match["start"]), int(match["end"])) if match["start"] else LineSpan(1, 10**9)
        passages.append(PromptPassage(match["path"], span, lines))
    return passages


def is_recalled(fixes: Sequence[TrueFix], prompt: str) -> bool:
    """Return whether a prompt contains every needed line, in passages of the right files.

    A line must match by number and by text, so that a line that was cut out of a passage does not count.
    """
    passages = find_passages(prompt)
    return all(_is_span_shown(fix, span, passages) for fix in fixes for span in fix.needed)


def _is_span_shown(fix: TrueFix, span: LineSpan, prompt_passages: Sequence[PromptPassage]) -> bool:
    lines = fix.before.splitlines()
    passages = [item for item in prompt_passages if item.path == fix.path]

    def is_line_shown(number: int) -> bool:
        # A prompt escapes text that could close its own passages.
        text = _TAG.sub(r"<\1\2_", lines[number - 1]).rstrip()
        return any(
            passage.span.start <= number <= passage.span.end and (not text or text in passage.lines)
            for passage in passages
        )

    return all(is_line_shown(number) for number in range(span.start, span.end + 1))


CHARACTERS_A_TOKEN = 4
PLAN = json.dumps({"summary": "look again", "subtasks": []})
CARD = json.dumps(
    {"summary": "a small bug", "root_cause": "as the patch says", "fix": "as the patch does", "debug_steps": []}
)
REFLECTION = json.dumps({"root_cause": "not known", "what_failed": "the last edit", "try_next": "another one"})
CANNOT_TELL = "I cannot tell from what is shown what is wrong.\n"
ATTEMPT = re.compile(r'^<data from="attempt (\d+)">$', re.MULTILINE)
_SIMPLE_LINE = re.compile(r"^\s*[\w.\[\]]+ *[-+*/]?= *[^\\]*[^\\,({\[:]$|^\s*return [^\\({\[]*$")
"""One-line assignments and returns, which a comment can follow."""


class ScriptedInstrument:
    """The base of the instruments. `patch` answers the question for edits; other questions get a fixed short answer."""

    name = "instrument"

    def patch(self, prompt: str) -> str:
        raise NotImplementedError

    def reply(self, question: str, prompt: str) -> str:
        """Answer a question, given its name and whole text."""
        fixed_answers = {"remember": CARD, "plan": PLAN, "reflect": REFLECTION}
        return fixed_answers[question] if question in fixed_answers else self.patch(prompt)

    async def ask(self, ask: Ask) -> Answer:
        prompt = "\n".join(message.text for message in ask.messages)
        text = self.reply(ask.question, prompt)
        usage = Usage(input_tokens=_count_tokens(prompt), output_tokens=_count_tokens(text))
        return Answer(text=text, model=f"instrument:{self.name}", usage=usage)


class OracleAtRecall(ScriptedInstrument):
    """Gives the true fix if and only if its prompt contains every line that the fix changes; else a wrong patch.

    So every task whose context has these lines ends green, unless the code around the model loses the fix.
    """

    name = "oracle-at-recall"

    def __init__(self, fixes: Sequence[TrueFix]) -> None:
        self._fixes = tuple(fixes)

    def patch(self, prompt: str) -> str:
        return format_true_patch(self._fixes) if is_recalled(self._fixes, prompt) else make_wrong_patch(prompt)


class NoisyOracle(ScriptedInstrument):
    """Gives the true fix with a set probability, which rises by `rise` with every attempt that its prompt describes.

    Give each run its own seed. Then runs are independent, and the number of solved runs has a known distribution.
    """

    name = "noisy-oracle"

    def __init__(self, fixes: Sequence[TrueFix], *, success_rate: float, rise: float = 0.0, seed: str = "") -> None:
        self._fixes, self._probability, self._rise, self._seed = tuple(fixes), success_rate, rise, seed

    def patch(self, prompt: str) -> str:
        attempts = count_attempts(prompt)
        chance = random.Random(f"{self._seed}/{attempts}").random()  # noqa: S311  (not used for secrets)
        return (
            format_true_patch(self._fixes)
            if chance < self._probability + self._rise * attempts
            else make_wrong_patch(prompt)
        )


def format_true_patch(fixes: Sequence[TrueFix]) -> str:
    """Format the fix as a model would give it."""
    return "WHY: the true fix\n\n" + "\n".join(fix.diff for fix in fixes)


def make_wrong_patch(prompt: str) -> str:
    """Make an edit of shown code that applies and changes nothing. It differs in each attempt."""
    attempts = count_attempts(prompt)
    for passage in find_passages(prompt):
        line = None if find_protection(passage.path) else _find_plain_line(passage)
        if line is not None:
            mark = "//" if passage.path.endswith(("js", "ts", "jsx", "tsx")) else "#"
            changed = f"{line}  {mark} looked at {attempts + 1}"
            return f"WHY: a guess\n\n{passage.path}\n<<<<<<< SEARCH\n{line}\n=======\n{changed}\n>>>>>>> REPLACE\n"
    return CANNOT_TELL


def count_attempts(prompt: str) -> int:
    """Return the number of the last attempt in the prompt; 0 for none."""
    return max(map(int, ATTEMPT.findall(prompt)), default=0)


def _find_plain_line(passage: PromptPassage) -> str | None:
    """Find the longest line that a comment can follow: it is the least likely to occur twice."""
    plain_lines = [line for line in passage.lines if _SIMPLE_LINE.match(line) and '"' not in line and "'" not in line]
    return max(plain_lines, key=lambda line: (len(line), line), default=None)


def _count_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
