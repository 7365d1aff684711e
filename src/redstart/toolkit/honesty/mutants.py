"""A reproducible sample of small changes to a new program that its tests should detect."""

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
"""With fewer mutants than this, the share that the tests detect is meaningless."""
LARGEST = 1 << 18
"""The largest size in bytes of a file that is mutated."""


class ProgramFile(NamedTuple):
    """A file of the new program."""

    before: bytes
    """Empty if the file is new."""
    now: bytes


def sample(files: Mapping[str, ProgramFile], seed: str, most: int = MOST) -> list[Mutant]:
    """Sample at most `most` changes of new lines in these files, spread over lines, kinds and functions.

    The same files and seed give the same changes, in the same order. A file that does not parse gives none.
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
    """Summarize the tried ones of `asked` changes, in their order; None if there are too few changes to judge."""
    if asked < FEWEST:
        return None
    survivors = tuple(mutant.words for mutant, is_noticed in zip(mutants, noticed, strict=False) if not is_noticed)
    return Mutants(sampled=len(noticed), killed=sum(noticed), survivors=survivors[:MOST])


def is_decided(asked: int, noticed: Sequence[bool]) -> bool:
    """Return whether the remaining changes can no longer change the verdict."""
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
    # A second change of a line tells less than a change of another line.
    return (line, line, ("kind", one.kind), ("place", (one.path, one.where)))
