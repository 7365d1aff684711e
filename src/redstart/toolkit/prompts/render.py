"""Filling in a question. What comes from a repo, a test or memory goes in as data, with where it is from."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from redstart.core.chat import Message, Role

_HOLE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)


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
