"""A reproducible sample of small changes to a new program that its tests should detect."""

from __future__ import annotations

import difflib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.report import LEAST_KILLED, Mutants
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.languages.registry import find_file_language

MAX_MUTANTS = 10
FEWEST = 3
"""With fewer mutants than this, the share that the tests detect is meaningless."""
MAX_FILE_BYTES = 1 << 18
"""The largest size in bytes of a file that is mutated."""


class ProgramFile(NamedTuple):
    """A file of the new program."""

    before: bytes
    """Empty if the file is new."""
    after: bytes


def sample_mutants(files: Mapping[str, ProgramFile], seed: str, limit: int = MAX_MUTANTS) -> list[Mutant]:
    """Sample at most `limit` changes of new lines in these files, spread over lines, kinds and functions.

    The same files and seed give the same changes, in the same order. A file that does not parse gives none.
    """
    pool = [
        mutant
        for path, file in sorted(files.items())
        if len(file.after) <= MAX_FILE_BYTES
        for mutant in _create_mutants(path, file.after)
        if mutant.line in find_new_lines(file)
    ]
    random.Random(seed).shuffle(pool)  # noqa: S311  (nothing is kept secret by it)
    selected: list[Mutant] = []
    mark_counts: Counter[tuple[str, object]] = Counter()
    while pool and len(selected) < limit:
        best = min(pool, key=lambda item: sum(mark_counts[mark] for mark in _list_marks(item)))
        pool.remove(best)
        selected.append(best)
        mark_counts.update(_list_marks(best))
    return selected


def summarize_mutants(total: int, detected: Sequence[bool], mutants: Sequence[Mutant]) -> Mutants | None:
    """Summarize the tried ones of `total` changes, in their order; None if there are too few changes to judge."""
    if total < FEWEST:
        return None
    survivors = tuple(mutant.words for mutant, is_noticed in zip(mutants, detected, strict=False) if not is_noticed)
    return Mutants(sampled=len(detected), killed=sum(detected), survivors=survivors[:MAX_MUTANTS])


def is_decided(total: int, detected: Sequence[bool]) -> bool:
    """Return whether the remaining changes can no longer change the verdict."""
    required = LEAST_KILLED * total
    killed = sum(detected)
    return killed >= required or killed + total - len(detected) < required


def _create_mutants(path: str, text: bytes) -> list[Mutant]:
    language = find_file_language(path)
    return language.create_mutants(path, text) if language else []


def find_new_lines(file: ProgramFile) -> frozenset[int]:
    """Find the lines of the file that were added or changed."""
    old, new = file.before.splitlines(), file.after.splitlines()
    if not old:
        return frozenset(range(1, len(new) + 1))
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return frozenset(line + 1 for tag, _, _, start, end in codes if tag != "equal" for line in range(start, end))


def _list_marks(mutant: Mutant) -> tuple[tuple[str, object], ...]:
    line = ("line", (mutant.path, mutant.line))
    # A second change of a line tells less than a change of another line.
    return (line, line, ("kind", mutant.kind), ("place", (mutant.path, mutant.function_name)))
