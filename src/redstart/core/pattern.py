"""Patterns: how a goal was reached once, for whoever plans one that is like it."""

from __future__ import annotations

import hashlib
import re

from pydantic import Field

from redstart.core.noun import FrozenValue, clip

LONGEST = 1000
"""Bytes of a goal that are kept, and that goals are compared by."""
FILES = 20
SUBTASKS = 8
_SENTENCE = re.compile(r"(?<=[.:;])\s|\n")
_WORD = re.compile(r"\w+")
_SHARED = """
a an and any are as at be by can for from has have if in into is it its no not of on one or other so such that the their
them then there they this to two was what when where which who whose will with all each else only give gives given write
make create build program tool small simple module function functions library command line python node
"""
"""Words that goals share whatever they are about."""
_SILENT = frozenset(_SHARED.split())


class SolutionFile(FrozenValue):
    """A file of a solution."""

    path: str
    role: str
    """What it is there for, in a few words."""


class SolutionPattern(FrozenValue):
    """What a verified run leaves for the plan of a goal that is like its own. Data in a prompt, never an instruction.

    A program that is made from parts leaves one, of the whole: its parts are runs of their own and leave none.
    """

    id: str
    goal: str
    """What was asked for; of an improvement without a goal, what it chose to do."""
    summary: str
    """What was planned."""
    subtasks: tuple[str, ...] = Field(default=(), max_length=SUBTASKS)
    """The titles of the plan's parts."""
    shape: tuple[SolutionFile, ...] = Field(default=(), max_length=FILES)
    """Of a new program its files, of an improvement those that it changed."""
    left_out: int = 0
    """How many files more there were."""
    mode: str
    """`create` or `improve`."""
    outcome: str
    """`verified`, or what else came of it: then it is quarantined."""
    provenance: dict[str, str]
    """Where it comes from: `repo`, `commit` (the tree that it began with), `run` and `model`."""

    @property
    def key(self) -> str:
        """The same for the same goal."""
        return hashlib.sha256(" ".join(self.goal.split()).casefold().encode(errors="replace")).hexdigest()[:32]

    @property
    def likeness(self) -> str:
        """The words by which a like goal finds it."""
        return goal_words(self.goal)


class RecalledPattern(FrozenValue):
    pattern: SolutionPattern
    likeness: float
    """Of the two goals, from 0 to 1."""


def goal_words(goal: str) -> str:
    """The words of a goal that another one is compared by: what it is first, and its details on a line of their own.

    Embedders give each line the same weight, so that details do not drown what the goal is about.
    """
    head, *details = _SENTENCE.split(clip(goal.strip(), LONGEST), maxsplit=1)
    lines = (_telling(head), *(_telling(text) for text in details))
    return "\n".join(line for line in lines if line)


def _telling(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text) if word.casefold() not in _SILENT)
