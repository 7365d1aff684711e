"""Fills in a question. Text from a repo, a test or memory is included as data, with its source."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from redstart.core.chat import Message, Role

_HOLE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)


def render(question: str, **sections: str) -> tuple[Message, ...]:
    """Build the messages of a question. Empty sections disappear. Raises `KeyError` for a section it does not have."""
    template = _template(question)
    if unknown := set(sections) - {hole for part in template for hole in _HOLE.findall(part)}:
        raise KeyError(f"the question {question!r} has no place for {sorted(unknown)}")

    def fill(part: str) -> str:
        filled = _HOLE.sub(lambda hole: (text := sections.get(hole[1], "")) and text.rstrip("\n") + "\n\n", part)
        return filled.strip() + "\n"

    system, user = template
    return (Message(role=Role.system, text=fill(system)), Message(role=Role.user, text=fill(user)))


def form_of_answer(name: str) -> str:
    """Load the description of one of several answer forms. `name` is a file in questions/forms."""
    return _text(f"forms/{name}.md")


def section(title: str, *blocks: str) -> str:
    """Format a titled part of a prompt. Empty if all blocks are empty."""
    said = [block for block in blocks if block]
    return "\n".join((f"## {title}", *said)) if said else ""


def names() -> tuple[str, ...]:
    """List all questions."""
    folder = files("redstart.toolkit.prompts") / "questions"
    return tuple(sorted(entry.name.removesuffix(".md") for entry in folder.iterdir() if entry.name.endswith(".md")))


@cache
def _template(question: str) -> tuple[str, str]:
    system, _, user = _text(f"{question}.md").partition("\n---\n")
    return system.strip() + "\n", user


@cache
def _text(name: str) -> str:
    return (files("redstart.toolkit.prompts") / "questions" / name).read_text(encoding="utf-8")
