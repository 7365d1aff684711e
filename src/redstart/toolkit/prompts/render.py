"""Fill in a question. Text from a repo, a test or memory is included as data, with its source."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from redstart.core.chat import Message, Role

_SECTION_MARK = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)


def render(question: str, **sections: str) -> tuple[Message, ...]:
    """Build the messages of a question. Empty sections disappear. Raises `KeyError` for a section it does not have."""
    template = _load_template(question)
    if unknown := set(sections) - {placeholder for part in template for placeholder in _SECTION_MARK.findall(part)}:
        raise KeyError(f"the question {question!r} has no place for {sorted(unknown)}")

    def fill(part: str) -> str:
        filled = _SECTION_MARK.sub(
            lambda match: (text := sections.get(match[1], "")) and text.rstrip("\n") + "\n\n", part
        )
        return filled.strip() + "\n"

    system, user = template
    return (Message(role=Role.system, text=fill(system)), Message(role=Role.user, text=fill(user)))


def load_answer_form(name: str) -> str:
    """Load the description of one of several answer forms. `name` is a file in questions/forms."""
    return _load_text(f"forms/{name}.md")


def format_section(title: str, *blocks: str) -> str:
    """Format a titled part of a prompt. Empty if all blocks are empty."""
    non_empty = [block for block in blocks if block]
    return "\n".join((f"## {title}", *non_empty)) if non_empty else ""


def list_questions() -> tuple[str, ...]:
    """List all questions."""
    folder = files("redstart.toolkit.prompts") / "questions"
    return tuple(sorted(entry.name.removesuffix(".md") for entry in folder.iterdir() if entry.name.endswith(".md")))


@cache
def _load_template(question: str) -> tuple[str, str]:
    system, _, user = _load_text(f"{question}.md").partition("\n---\n")
    return system.strip() + "\n", user


@cache
def _load_text(name: str) -> str:
    return (files("redstart.toolkit.prompts") / "questions" / name).read_text(encoding="utf-8")
