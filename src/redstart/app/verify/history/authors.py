"""Tell bots and coding agents from people, by the names and addresses that they commit with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.utils import parseaddr
from typing import NamedTuple

AGENTS = {
    "Aider": r"@aider\.chat$|\(aider\)$",
    "Amp": r"@ampcode\.com$",
    "Claude": r"^noreply@anthropic\.com$|^claude(?:-code)?\[bot\]$",
    "Codex": r"^(?:codex|noreply)@openai\.com$|^(?:chatgpt-)?codex(?:-connector)?(?:\[bot\])?$",
    "Copilot": r"^(?:\d+\+)?copilot@users\.noreply\.github\.com$|^copilot(?:-swe-agent)?(?:\[bot\])?$",
    "Cursor": r"^cursoragent@cursor\.com$|^cursor(?:agent)?\[bot\]$",
    "Devin": r"^devin-ai-integration\[bot\]$|@devin\.ai$",
    "Gemini": r"^gemini-(?:code-assist|cli)(?:-robot|\[bot\])?$|^gemini-cli@google\.com$",
    "Jules": r"^google-labs-jules(?:\[bot\])?$",
    "Junie": r"^junie@jetbrains\.com$|^jetbrains-junie\[bot\]$",
    "OpenHands": r"^openhands@all-hands\.dev$|^openhands-agent$",
}
"""Matches the whole name or address of the author or co-author, without regard to case."""
BOTS = (
    r"\[bot\](?:@users\.noreply\.github\.com)?$|(?:^|[-_ ])bot$"
    r"|^(?:dependabot|renovate|greenkeeper|pre-commit-ci|github-actions|weblate)\b"
)
_AGENTS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in AGENTS.items()}
_BOTS = re.compile(BOTS, re.IGNORECASE)


class Contributor(NamedTuple):
    """Who git names as an author or a co-author: a person, a bot or an agent."""

    name: str
    address: str

    @property
    def is_bot(self) -> bool:
        return any(_BOTS.search(text) for text in self)


def parse_contributor(trailer: str) -> Contributor:
    """Read the value of a `Co-Authored-By` trailer."""
    return Contributor(*parseaddr(trailer))


def find_agents(people: Iterable[Contributor]) -> tuple[str, ...]:
    """Return the agents among these people, by name."""
    texts = {text.strip() for person in people for text in person}
    return tuple(name for name, pattern in _AGENTS.items() if any(pattern.search(text) for text in texts))
