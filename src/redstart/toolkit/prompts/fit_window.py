"""Fit a prompt to the model's window: the most valuable text for its length stays, and what is cut is listed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.chat import Message
from redstart.core.frozen import clip
from redstart.ports.bundle import ProgressNote
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts.render import render

CHARACTERS_A_TOKEN = 3
"""A safe estimate: code has between 3 and 4."""
MIN_PASSAGE_TOKENS = 60
"""The smallest clipped passage, in tokens, that is still useful."""
SECTION_VALUES = {
    "failing": 100.0,
    "broken": 100.0,
    "new_tests": 100.0,
    "code": 100.0,
    "probed": 60.0,
    "rejected": 50.0,
    "tried": 40.0,
    "plan": 25.0,
    "failed": 20.0,
    "lessons": 15.0,
    "advice": 15.0,
    "patterns": 10.0,
}
"""The value of a section's first passage. The n-th passage has 1/n of it. See `fit_question`."""
ANNOUNCED = frozenset({"plan", "new_tests"})
"""Sections that say in the prompt itself that a part of them is left out."""
TEST_SECTIONS = frozenset({"failing", "broken"})
LITTLE = 5.0
"""The value of a passage of the project's notes or of static findings."""
NEEDED = frozenset({"answer", "goal", "hint", "package", "form", "looking", "ask", "fix"})
"""Sections that the question cannot do without."""

TEST_SOURCE, TEST_OUTPUT, OTHER_TESTS = "source of this test", "output of this test", "other failing tests"
"""The sources of passages that follow a failing test, and of the one that follows them all."""
PASSAGE_SHARES = {TEST_SOURCE: 0.9, TEST_OUTPUT: 0.5, OTHER_TESTS: 0.1}
LATER_TEST = 0.2
"""The value of a token in these passages, and in those about a later test, relative to one of the first passage."""

_PASSAGE = re.compile(r'^<data from="(?P<source>[^"]*)">\n(?P<text>.*?)\n</data>$', re.MULTILINE | re.DOTALL)


class PromptPart(NamedTuple):
    """A passage that a prompt may show."""

    name: str
    """Unique among the parts that are fitted together."""
    text: str
    value: float
    """The value of the complete part, relative to the other parts. Infinite for a part that must be cut last."""
    min_tokens: int | None = None
    """The number of tokens below which a clipped part is useless. None if the part is useful only as a whole."""
    wrap: Callable[[str], str] = str
    """Applied to the text after clipping, so that the wrapping itself is never cut."""


class LeftOutPart(NamedTuple):
    name: str
    tokens: int
    """How many of the part's tokens are not shown."""
    all: bool
    """Whether the whole part is left out."""


class FittedPrompt(NamedTuple):
    shown_parts: dict[str, str]
    """The wrapped text of each part that is shown, in the original order."""
    left_out: tuple[LeftOutPart, ...]
    tokens: int


class BuiltQuestion(NamedTuple):
    messages: tuple[Message, ...]
    left_out: tuple[str, ...]
    """Short descriptions of the passages that are left out."""


def fit_messages(note: ProgressNote, question: str, room: int, **sections: str) -> tuple[Message, ...]:
    """Build the messages of a question within `room` tokens. `note` receives what is left out."""
    built = fit_question(question, room, **sections)
    if built.left_out:
        note(not_shown=list(built.left_out))
    return built.messages


def fit_question(question: str, room: int, **sections: str) -> BuiltQuestion:
    """Build the messages of a question in at most about `room` tokens; see `render`. A `room` of 0 means no limit.

    Sections lose whole passages (the text between `<data>` and `</data>`), or the middle of one. The least valuable
    for their length go first. Required sections are never cut.
    """
    messages = render(question, **sections)
    excess = sum(estimate_tokens(message.text) for message in messages) - room
    if not room or excess <= 0:
        return BuiltQuestion(messages, ())
    parts = [part for name, text in sections.items() if name not in NEEDED for part in _split_passages(name, text)]
    fitted_prompt = fit(parts, max(sum(estimate_tokens(part.wrap(part.text)) for part in parts) - excess, 0))
    kept_sections = {name: _with_passages(name, text, fitted_prompt.shown_parts) for name, text in sections.items()}
    descriptions = tuple(
        f"{item.name}: {'all' if item.all else f'{item.tokens} tokens'}" for item in fitted_prompt.left_out
    )
    return BuiltQuestion(render(question, **kept_sections), descriptions)


def _split_passages(name: str, section: str) -> Iterator[PromptPart]:
    matches = list(_PASSAGE.finditer(section))
    wraps = [partial(wrap_untrusted, match["source"], limit=len(match["text"]) * 4 + 1) for match in matches]
    sources = [match["source"] for match in matches]
    values = [SECTION_VALUES.get(name, LITTLE) / number for number in range(1, len(matches) + 1)]
    if name in TEST_SECTIONS and not {TEST_SOURCE, TEST_OUTPUT, OTHER_TESTS}.isdisjoint(sources):
        tokens = [estimate_tokens(wrap(match["text"])) for wrap, match in zip(wraps, matches, strict=True)]
        values = _value_test_passages(values[0], sources, tokens)
    for number, (match, wrap, value) in enumerate(zip(matches, wraps, values, strict=True), 1):
        part_name = _name_passage(name, number, match["source"])
        yield PromptPart(part_name, match["text"], value, MIN_PASSAGE_TOKENS, wrap)


def _value_test_passages(value: float, sources: Sequence[str], tokens: Sequence[int]) -> list[float]:
    """Value passages about failing tests so that the first test's traceback and source are cut last.

    Before them goes what the first test printed, before that all later tests, and first of all the list of the others.
    """
    kept_together = tokens[0] + (tokens[1] if sources[1:2] == [TEST_SOURCE] else 0)
    values: list[float] = []
    first_share = 1.0
    for number, (source, count) in enumerate(zip(sources, tokens, strict=True)):
        first_share = LATER_TEST if number and source == "test" else first_share
        share = min(first_share, PASSAGE_SHARES.get(source, 1.0))
        values.append(value / kept_together * share * count / (1 + number / 1000))
    return values


def _with_passages(name: str, section: str, shown_passages: dict[str, str]) -> str:
    """Return the section with the passages that are shown. Empty if it had passages and none is left, unless the
    section says so."""
    if name in NEEDED or not section:
        return section
    matches = list(_PASSAGE.finditer(section))
    names = [_name_passage(name, number, item["source"]) for number, item in enumerate(matches, 1)]
    cut_count = sum(shown_passages.get(item) != match[0] for item, match in zip(names, matches, strict=True))
    note = f"({cut_count} of {len(names)} parts of this section do not fit: they are shortened or left out.)"
    is_announced = name in ANNOUNCED and cut_count > 0
    if matches and not any(item in shown_passages for item in names):
        return f"{section.partition(chr(10))[0]}\n{note}" if is_announced else ""
    remaining_names = iter(names)
    result = _PASSAGE.sub(lambda _: shown_passages.get(next(remaining_names), ""), section)
    result = re.sub(r"\n{2,}(?=<data |## |\Z)", "\n", result).rstrip("\n")
    return f"{result}\n{note}" if is_announced else result


def _name_passage(section: str, number: int, source: str) -> str:
    return f"{section} {number} ({source})"


def estimate_tokens(text: str) -> int:
    """Estimate an upper bound of the tokens without the model's own tokenizer."""
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def fit(parts: Sequence[PromptPart], room: int, *, cost: Callable[[str], int] = estimate_tokens) -> FittedPrompt:
    """Choose the parts that fit into `room` tokens by value per token. Among equals, the first one wins.

    A part that does not fit is clipped to the remaining room if it allows that and enough remains. Otherwise it is
    left out, and smaller parts after it may still fit. Empty parts are neither shown nor listed as left out.
    """
    non_empty = [part for part in parts if part.text.strip()]
    full_costs = {part.name: cost(part.wrap(part.text)) for part in non_empty}
    shown: dict[str, str] = {}
    used = 0
    for part in sorted(non_empty, key=lambda item: item.value / max(full_costs[item.name], 1), reverse=True):
        text = _clip_to_room(part, room - used, cost)
        if text:
            shown[part.name] = text
            used += cost(text)
    left_out = [
        LeftOutPart(part.name, full_costs[part.name] - cost(shown.get(part.name, "")), part.name not in shown)
        for part in non_empty
        if shown.get(part.name) != part.wrap(part.text)
    ]
    return FittedPrompt(
        {part.name: shown[part.name] for part in non_empty if part.name in shown}, tuple(left_out), used
    )


def _clip_to_room(part: PromptPart, room: int, cost: Callable[[str], int]) -> str:
    """Return as much of the part as fits into `room`. Empty if that would be too little."""
    full_text = part.wrap(part.text)
    if cost(full_text) <= room:
        return full_text
    if part.min_tokens is None or room < max(part.min_tokens, 1):
        return ""
    smallest, largest = 0, len(part.text.encode(errors="replace"))
    while largest - smallest > 1:
        middle = (smallest + largest) // 2
        smallest, largest = (
            (middle, largest) if cost(part.wrap(clip(part.text, middle))) <= room else (smallest, middle)
        )
    clipped = part.wrap(clip(part.text, smallest))
    return clipped if part.min_tokens <= cost(clipped) <= room else ""
