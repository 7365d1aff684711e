"""Patterns: how a goal was reached, for the plan of a similar goal."""

from __future__ import annotations

import hashlib
import re

from pydantic import Field

from redstart.core.frozen import FrozenValue, clip

LONGEST = 1000
"""Maximum bytes of a goal that are stored and compared."""
FILES = 20
SUBTASKS = 8
_SENTENCE = re.compile(r"(?<=[.:;])\s|\n")
_WORD = re.compile(r"\w+")
_STOP_WORD_TEXT = """
a an and any are as at be by can for from has have if in into is it its no not of on one or other so such that the their
them then there they this to two was what when where which who whose will with all each else only give gives given write
make create build program tool small simple module function functions library command line python node
"""
"""Words that goals share regardless of their topic."""
_STOP_WORDS = frozenset(_STOP_WORD_TEXT.split())


class SolutionFile(FrozenValue):
    """A file of a solution."""

    path: str
    role: str
    """The purpose of the file, in a few words."""


class SolutionPattern(FrozenValue):
    """What a verified run leaves for the plan of a similar goal. In a prompt it is data, never an instruction.

    A program that is built in parts leaves one pattern for the whole program. Its child runs leave none.
    """

    id: str
    goal: str
    """The request; for an improvement without a goal, what the run chose to do."""
    summary: str
    """Summary of the plan."""
    subtasks: tuple[str, ...] = Field(default=(), max_length=SUBTASKS)
    """The titles of the plan's parts."""
    shape: tuple[SolutionFile, ...] = Field(default=(), max_length=FILES)
    """The files of a new program, or the files that an improvement changed."""
    left_out: int = 0
    """How many further files there were."""
    mode: str
    """`create` or `improve`."""
    outcome: str
    """`verified`, or another outcome, with which the pattern is quarantined."""
    provenance: dict[str, str]
    """Where it comes from: `repo`, `commit` (the tree at the start), `run` and `model`."""

    @property
    def key(self) -> str:
        """Identity of the goal: the same goal has the same key."""
        return hashlib.sha256(" ".join(self.goal.split()).casefold().encode(errors="replace")).hexdigest()[:32]

    @property
    def likeness(self) -> str:
        """The words that a similar goal is matched with."""
        return extract_goal_words(self.goal)


class RecalledPattern(FrozenValue):
    pattern: SolutionPattern
    likeness: float
    """Similarity of the two goals, from 0 to 1."""


def extract_goal_words(goal: str) -> str:
    """Extract the words of a goal for the comparison with others: the topic first, the details on a separate line.

    Embedders give each line the same weight, so the details do not outweigh the topic.
    """
    head, *details = _SENTENCE.split(clip(goal.strip(), LONGEST), maxsplit=1)
    lines = (_remove_common_words(head), *(_remove_common_words(text) for text in details))
    return "\n".join(line for line in lines if line)


def _remove_common_words(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text) if word.casefold() not in _STOP_WORDS)
