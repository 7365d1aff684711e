"""Fitting a prompt to the model's window: what says the most for its length stays, and what goes is named."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.chat import Message
from redstart.core.noun import clip
from redstart.ports.bundle import ProgressNote
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.render import render

CHARACTERS_A_TOKEN = 3
"""On the safe side: code takes between 3 and 4."""
LEAST = 60
"""Tokens of a clipped passage that still say something."""
WORTH = {
    "failing": 100.0,
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
"""What the first passage of a section is worth; the second half as much, and so on. See `fit_question`."""
LITTLE = 5.0
"""What a passage of the project's notes or of static findings is worth."""
NEEDED = frozenset({"answer", "goal", "hint", "package", "form", "looking", "ask", "fix"})
"""Sections without which the question is another one."""

_PASSAGE = re.compile(r'^<data from="(?P<source>[^"]*)">\n(?P<text>.*?)\n</data>$', re.MULTILINE | re.DOTALL)


class PromptPart(NamedTuple):
    """A passage that a prompt may show."""

    name: str
    """Unique among the parts that are fitted together."""
    text: str
    value: float
    """What the whole of it is worth beside the other parts; infinite for what must not go before anything else."""
    least: int | None = None
    """Tokens below which a clipped part says nothing; None where it is of use only as a whole."""
    wrap: Callable[[str], str] = str
    """Put around what stays of the text, so that clipping never cuts a wrapping in two."""


class LeftOutPart(NamedTuple):
    name: str
    tokens: int
    """How many of its tokens are not shown."""
    all: bool
    """Whether nothing of it is."""


class FittedPrompt(NamedTuple):
    shown: dict[str, str]
    """What is shown of each part that is shown, wrapped, in the order in which they were given."""
    left_out: tuple[LeftOutPart, ...]
    tokens: int


class BuiltQuestion(NamedTuple):
    messages: tuple[Message, ...]
    left_out: tuple[str, ...]
    """What of the sections is not in them, each in a few words."""


def fitted(note: ProgressNote, question: str, room: int, **sections: str) -> tuple[Message, ...]:
    """The messages of a question in that room; `note` is told what of its sections is not in them."""
    asked = fit_question(question, room, **sections)
    if asked.left_out:
        note(not_shown=list(asked.left_out))
    return asked.messages


def fit_question(question: str, room: int, **sections: str) -> BuiltQuestion:
    """The messages of a question in at most about `room` tokens; see `render`. A `room` of 0 has no end.

    Sections lose whole passages (what stands between `<data>` and `</data>`), or the middle of one, the least
    valuable for their length first; what the question needs to be itself is never cut.
    """
    messages = render(question, **sections)
    over = sum(tokens(message.text) for message in messages) - room
    if not room or over <= 0:
        return BuiltQuestion(messages, ())
    parts = [part for name, text in sections.items() if name not in NEEDED for part in _passages(name, text)]
    fitted = fit(parts, max(sum(tokens(part.wrap(part.text)) for part in parts) - over, 0))
    kept = {name: _with_passages(name, text, fitted.shown) for name, text in sections.items()}
    said = tuple(f"{item.name}: {'all' if item.all else f'{item.tokens} tokens'}" for item in fitted.left_out)
    return BuiltQuestion(render(question, **kept), said)


def _passages(name: str, section: str) -> Iterator[PromptPart]:
    for number, found in enumerate(_PASSAGE.finditer(section), 1):
        wrap = partial(data, found["source"], limit=len(found["text"]) * 4 + 1)
        worth = WORTH.get(name, LITTLE) / number
        yield PromptPart(_named(name, number, found["source"]), found["text"], worth, LEAST, wrap)


def _with_passages(name: str, section: str, shown: dict[str, str]) -> str:
    """The section with what is shown of its passages; empty where it had some and none is left."""
    if name in NEEDED or not section:
        return section
    found = list(_PASSAGE.finditer(section))
    names = [_named(name, number, item["source"]) for number, item in enumerate(found, 1)]
    if found and not any(item in shown for item in names):
        return ""
    left = iter(names)
    cut = _PASSAGE.sub(lambda _: shown.get(next(left), ""), section)
    return re.sub(r"\n{2,}(?=<data |## |\Z)", "\n", cut).rstrip("\n")


def _named(section: str, number: int, source: str) -> str:
    return f"{section} {number} ({source})"


def tokens(text: str) -> int:
    """At most so many, as far as that can be said without the model's own tokenizer."""
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def fit(parts: Sequence[PromptPart], room: int, *, cost: Callable[[str], int] = tokens) -> FittedPrompt:
    """The parts that fit into `room` tokens, chosen by value per token; of equal ones, the first given.

    A part that does not fit as a whole is clipped to the room that is left, where it allows that and enough is left;
    else it is left out, and smaller ones after it may still fit. Empty parts are neither shown nor left out.
    """
    real = [part for part in parts if part.text.strip()]
    whole = {part.name: cost(part.wrap(part.text)) for part in real}
    kept: dict[str, str] = {}
    used = 0
    for part in sorted(real, key=lambda item: item.value / max(whole[item.name], 1), reverse=True):
        text = _within(part, room - used, cost)
        if text:
            kept[part.name] = text
            used += cost(text)
    left = [
        LeftOutPart(part.name, whole[part.name] - cost(kept.get(part.name, "")), part.name not in kept)
        for part in real
        if kept.get(part.name) != part.wrap(part.text)
    ]
    return FittedPrompt({part.name: kept[part.name] for part in real if part.name in kept}, tuple(left), used)


def _within(part: PromptPart, room: int, cost: Callable[[str], int]) -> str:
    """As much of the part as fits into `room`; empty where that would be too little."""
    whole = part.wrap(part.text)
    if cost(whole) <= room:
        return whole
    if part.least is None or room < max(part.least, 1):
        return ""
    smallest, largest = 0, len(part.text.encode(errors="replace"))
    while largest - smallest > 1:
        middle = (smallest + largest) // 2
        smallest, largest = (
            (middle, largest) if cost(part.wrap(clip(part.text, middle))) <= room else (smallest, middle)
        )
    clipped = part.wrap(clip(part.text, smallest))
    return clipped if part.least <= cost(clipped) <= room else ""
