"""Filling in a question. What comes from a repo, a test or memory goes in as data, with where it is from."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from redstart.core.chat import Message, Role
from redstart.core.noun import clip

_HOLE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)
_ODD = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\"<>]")
_TAG = re.compile(r"<(/?)(data)\b", re.IGNORECASE)


def render(question: str, **sections: str) -> tuple[Message, ...]:
    """The messages of a question. A section that is empty leaves no trace; one that the question lacks is an error."""
    system, user = _template(question)
    holes = set(_HOLE.findall(user))
    if unknown := set(sections) - holes:
        raise KeyError(f"the question {question!r} has no place for {sorted(unknown)}")
    filled = _HOLE.sub(lambda hole: (text := sections.get(hole[1], "")) and text.rstrip("\n") + "\n\n", user)
    return (Message(role=Role.system, text=system), Message(role=Role.user, text=filled.strip() + "\n"))


def data(source: str, text: str, limit: int = 20_000) -> str:
    """Untrusted text as a block that cannot be closed from inside."""
    safe = _TAG.sub(r"<\1\2_", clip(text, limit))
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
    text = (files("redstart.toolkit.prompts") / "questions" / f"{question}.md").read_text(encoding="utf-8")
    system, _, user = text.partition("\n---\n")
    return system.strip() + "\n", user
