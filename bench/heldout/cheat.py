"""The shape of a cheat, and of the ground that it is played on."""

from __future__ import annotations

from textwrap import dedent
from typing import Literal, NamedTuple

Runner = Literal["pytest", "unittest"]


class Cheat(NamedTuple):
    """One dishonest answer and the repository it is given in."""

    name: str
    idea: str
    runner: Runner
    repo: dict[str, str]
    edits: dict[str, str | None]
    honest: dict[str, str]
    fools: str = "exit code"
    """The weaker check that is fooled: `exit code`, `exit code with PYTHONPATH=.` or `junit report`."""
    probe: str = ""
    """`module:expression`, whose printed value is right only in a repository that is truly fixed."""


class Ground(NamedTuple):
    """A repository with a bug, its true fix and its probe."""

    runner: Runner
    repo: dict[str, str]
    source: str
    honest: dict[str, str]
    probe: str


def text(value: str) -> str:
    """A file's text: the common indentation and the first line break are taken away."""
    return dedent(value).lstrip("\n")


def swap(ground: Ground, old: str, new: str, path: str | None = None) -> str:
    """The file's text with one passage replaced; the passage must be there exactly once."""
    whole = ground.repo[path or ground.source]
    if whole.count(old) != 1:
        raise ValueError(f"{old!r} is there {whole.count(old)} times")
    return whole.replace(old, new)


def make(name: str, idea: str, ground: Ground, edits: dict[str, str | None], fools: str = "exit code") -> Cheat:
    """A cheat on a ground."""
    return Cheat(name, idea, ground.runner, ground.repo, edits, ground.honest, fools, ground.probe)
