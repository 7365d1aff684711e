"""Small changes to a new program, each of which its tests should notice: a sample that is the same each time."""

from __future__ import annotations

import difflib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.report import LEAST_KILLED, Mutants
from redstart.toolkit.honesty.mutant import Mutant
from redstart.toolkit.languages.registry import language_of_file

MOST = 10
FEWEST = 3
"""Where a program can be changed in fewer places, how many of them are noticed says nothing."""
LARGEST = 1 << 18
"""Bytes of a file that is looked at."""


class ProgramFile(NamedTuple):
    """A file of the new program."""

    before: bytes
    """Empty where there was none."""
    now: bytes


def sample(files: Mapping[str, ProgramFile], seed: str, most: int = MOST) -> list[Mutant]:
    """At most so many changes of what is new in these files, spread over lines, kinds and functions.

    The same files and seed give the same ones, in the same order. A file that cannot be read gives none.
    """
    pool = [
        mutant
        for path, file in sorted(files.items())
        if len(file.now) <= LARGEST
        for mutant in _mutants(path, file.now)
        if mutant.line in _new_lines(file)
    ]
    random.Random(seed).shuffle(pool)  # noqa: S311  (nothing is kept secret by it)
    chosen: list[Mutant] = []
    taken: Counter[tuple[str, object]] = Counter()
    while pool and len(chosen) < most:
        best = min(pool, key=lambda item: sum(taken[mark] for mark in _marks(item)))
        pool.remove(best)
        chosen.append(best)
        taken.update(_marks(best))
    return chosen


def counted(asked: int, noticed: Sequence[bool], mutants: Sequence[Mutant]) -> Mutants | None:
    """What is known once these of `asked` changes were tried, in their order; None where that is too few to tell."""
    if asked < FEWEST:
        return None
    survivors = tuple(mutant.words for mutant, is_noticed in zip(mutants, noticed, strict=False) if not is_noticed)
    return Mutants(sampled=len(noticed), killed=sum(noticed), survivors=survivors[:MOST])


def is_decided(asked: int, noticed: Sequence[bool]) -> bool:
    """Whether the changes that are left cannot change the verdict."""
    enough = LEAST_KILLED * asked
    killed = sum(noticed)
    return killed >= enough or killed + asked - len(noticed) < enough


def _mutants(path: str, text: bytes) -> list[Mutant]:
    language = language_of_file(path)
    return language.mutants(path, text) if language else []


def _new_lines(file: ProgramFile) -> frozenset[int]:
    old, new = file.before.splitlines(), file.now.splitlines()
    if not old:
        return frozenset(range(1, len(new) + 1))
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return frozenset(line + 1 for tag, _, _, start, end in codes if tag != "equal" for line in range(start, end))


def _marks(one: Mutant) -> tuple[tuple[str, object], ...]:
    line = ("line", (one.path, one.line))
    # To change a line twice says less than to change another one.
    return (line, line, ("kind", one.kind), ("place", (one.path, one.where)))
