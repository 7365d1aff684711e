"""Filling in a question. What comes from a repo, a test or memory goes in as data, with where it is from."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from redstart.core.chat import Message, Role
from redstart.core.noun import clip

_HOLE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)
_ODD = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\"<>]")
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
)
_TAG = re.compile(
    # In code a blank may stand before a name, but not before a slash.
    rf"[<\uff1c\ufe64](?:[\s{_UNSEEN}]*[/\uff0f][\s{_UNSEEN}]*|[{_UNSEEN}]*)"
    + f"[{_UNSEEN}]*".join(("[d\uff44]", "[a\uff41]", "[t\uff54]", "[a\uff41]"))
    + r"\b",
    re.IGNORECASE,
)
"""What is, or reads as, the begin or the end of a block."""


def render(question: str, **sections: str) -> tuple[Message, ...]:
    """The messages of a question. A section that is empty leaves no trace; one that the question lacks is an error."""
    template = _template(question)
    if unknown := set(sections) - {hole for part in template for hole in _HOLE.findall(part)}:
        raise KeyError(f"the question {question!r} has no place for {sorted(unknown)}")

    def fill(part: str) -> str:
        filled = _HOLE.sub(lambda hole: (text := sections.get(hole[1], "")) and text.rstrip("\n") + "\n\n", part)
        return filled.strip() + "\n"

    system, user = template
    return (Message(role=Role.system, text=fill(system)), Message(role=Role.user, text=fill(user)))


def form_of_answer(name: str) -> str:
    """What a question says of the form of its answer, where it has several; `name` is a file in questions/forms."""
    return _text(f"forms/{name}.md")


def data(source: str, text: str, limit: int = 20_000) -> str:
    """Untrusted text as a block that cannot be closed from inside."""
    safe = _TAG.sub(r"\g<0>_", clip(text, limit))
    # A path is the repo's own choice too.
    source = _ODD.sub("_", source)
    return f'<data from="{source}">\n{safe.rstrip()}\n</data>'


def section(title: str, *blocks: str) -> str:
    """A titled part of a prompt; empty where it has nothing to say."""
    said = [block for block in blocks if block]
    return "\n".join((f"## {title}", *said)) if said else ""


def names() -> tuple[str, ...]:
    """Every question there is."""
    folder = files("redstart.toolkit.prompts") / "questions"
    return tuple(sorted(entry.name.removesuffix(".md") for entry in folder.iterdir() if entry.name.endswith(".md")))


@cache
def _template(question: str) -> tuple[str, str]:
    system, _, user = _text(f"{question}.md").partition("\n---\n")
    return system.strip() + "\n", user


@cache
def _text(name: str) -> str:
    return (files("redstart.toolkit.prompts") / "questions" / name).read_text(encoding="utf-8")
