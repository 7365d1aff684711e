"""Aligning a hunk with lines that are almost its own: context may differ, what is removed may not."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from redstart.toolkit.patching.fitting.places import Page, loosely
from redstart.toolkit.patching.fitting.variations import leading
from redstart.toolkit.patching.hunks import COMES, GOES, STAYS, Hunk, Line
from redstart.toolkit.patching.text import Span

AROUND = 4
"""How many lines a hunk may lack or have too many."""
NEVER = 1e9
_SIMILAR = 0.7
_DIAGONALS = 12


class Aligned(NamedTuple):
    """Where each old line stands; None for one that stays in the hunk and is not in the file."""

    at: tuple[int | None, ...]
    faults: int
    tail_differs: bool
    """The last line is not as the file has it, but the file's line begins with it."""


def alignments(page: Page, hunk: Hunk) -> list[Aligned]:
    """Every way to lay the hunk on the file with few enough faults, each place once."""
    old = hunk.old
    found: dict[tuple[int | None, ...], Aligned] = {}
    for diagonal in _diagonals(page, old):
        low = max(diagonal - AROUND, 0)
        high = min(diagonal + len(old) + AROUND, len(page.lines))
        aligned = _align(page.lines[low:high], old, low)
        if aligned is not None and _good(page, old, aligned):
            found[tuple(at if old[n].mark == GOES else None for n, at in enumerate(aligned.at)) + aligned.at] = aligned
    return list(found.values())


def spans(page: Page, hunk: Hunk, at: Sequence[int | None]) -> list[Span] | None:
    """The change as spans of the file; None where a place to insert is not pinned by the lines on both of its sides."""
    made: list[Span] = []
    number, lines = 0, list(hunk.lines)
    while number < len(lines):
        if lines[number].mark == STAYS:
            number += 1
            continue
        end = number
        while end < len(lines) and lines[end].mark != STAYS:
            end += 1
        span = _span(page, hunk, at, number, end)
        if span is None:
            return None
        made.append(span)
        number = end
    return made


def _span(page: Page, hunk: Hunk, at: Sequence[int | None], begin: int, end: int) -> Span | None:
    run = hunk.lines[begin:end]
    first_old = sum(line.mark != COMES for line in hunk.lines[:begin])
    gone = [at[first_old + n] for n in range(sum(line.mark == GOES for line in run))]
    new = tuple(line.text for line in run if line.mark == COMES)
    if gone:
        real = [place for place in gone if place is not None]
        if len(real) != len(gone) or real[-1] - real[0] + 1 != len(real):
            return None
        beside = (
            (at[first_old - 1] if first_old else None),
            (at[first_old + len(gone)] if first_old + len(gone) < len(at) else None),
        )
        gap = beside[0] not in (None, real[0] - 1) or beside[1] not in (None, real[-1] + 1)
        if gap and new and not _one_by_one(run):
            return None
        return Span(real[0], real[-1] + 1, new)
    before = at[first_old - 1] if first_old else -2
    after = at[first_old] if first_old < len(at) else -2
    if before is None or after is None or before == after:
        return None
    if before == -2:
        return Span(after, after, new)
    if after in (-2, before + 1):
        return Span(before + 1, before + 1, new) if before < len(page.lines) else None
    return None


def _one_by_one(run: Sequence[Line]) -> bool:
    """Whether each line that comes is another form of one that goes: then it belongs where that one was."""
    gone = [line.text for line in run if line.mark == GOES]
    coming = [line.text for line in run if line.mark == COMES]
    return len(gone) == len(coming) and all(_alike(one, other) for one, other in zip(gone, coming, strict=True))


def _alike(one: str, other: str) -> bool:
    matcher = difflib.SequenceMatcher(None, one.strip(), other.strip(), autojunk=False)
    return matcher.quick_ratio() >= _SIMILAR and matcher.ratio() >= _SIMILAR


def _diagonals(page: Page, old: Sequence[Line]) -> list[int]:
    """Offsets between hunk and file on which the most lines agree."""
    votes: Counter[int] = Counter()
    for number, line in enumerate(old):
        places = page.where(line.text) if line.text.strip() else ()
        if len(places) <= 40:
            votes.update(place - number for place in places)
    return [diagonal for diagonal, _ in votes.most_common(_DIAGONALS)]


def _align(real: Sequence[str], old: Sequence[Line], low: int) -> Aligned | None:
    """The cheapest alignment within a window: lines of the file may be free before and behind, and cost one between."""
    rows, columns = len(old), len(real)
    cost = [[0.0] * (columns + 1)] + [[NEVER] * (columns + 1) for _ in range(rows)]
    for row in range(1, rows + 1):
        line = old[row - 1]
        absent = NEVER if line.mark == GOES else (0.4 if not line.text.strip() else 1.3)
        for column in range(columns + 1):
            best = cost[row - 1][column] + absent
            if column:
                best = min(best, cost[row - 1][column - 1] + _price(line, real[column - 1]))
                skip = 0.0 if row == rows else (0.5 if not real[column - 1].strip() else 1.0)
                best = min(best, cost[row][column - 1] + skip)
            cost[row][column] = best
    if cost[rows][columns] >= NEVER:
        return None
    return _traced(cost, real, old, low)


def _traced(cost: list[list[float]], real: Sequence[str], old: Sequence[Line], low: int) -> Aligned:
    at: list[int | None] = [None] * len(old)
    faults = 0
    tail = False
    row, column = len(old), len(real)
    while row:
        line = old[row - 1]
        here = cost[row][column]
        if column and abs(here - cost[row - 1][column - 1] - (price := _price(line, real[column - 1]))) < 1e-6:
            at[row - 1] = low + column - 1
            faults += price > 0
            tail = tail or (price > 0 and row == len(old) and real[column - 1].startswith(line.text.rstrip()))
            row, column = row - 1, column - 1
        elif column and _skipped(cost, real, row, column, len(old)):
            faults += row != len(old)
            column -= 1
        else:
            faults += bool(line.text.strip())
            row -= 1
    return Aligned(tuple(at), faults, tail)


def _skipped(cost: list[list[float]], real: Sequence[str], row: int, column: int, rows: int) -> bool:
    skip = 0.0 if row == rows else (0.5 if not real[column - 1].strip() else 1.0)
    return abs(cost[row][column] - cost[row][column - 1] - skip) < 1e-6


def _price(line: Line, real: str) -> float:
    if loosely(line, real):
        return 0.0
    if line.mark == GOES or not line.text.strip() or not real.strip():
        return NEVER
    if leading(line.text) != leading(real):
        return NEVER  # what comes may be indented as wrongly
    return 0.9 if _alike(line.text, real) else NEVER


def _good(page: Page, old: Sequence[Line], aligned: Aligned) -> bool:
    """Few faults beside many lines that agree."""
    said = [(line, at) for line, at in zip(old, aligned.at, strict=True) if line.text.strip()]
    agree = sum(at is not None and loosely(line, page.lines[at]) for line, at in said)
    return agree >= 2 and aligned.faults <= 1 + len(said) // 5 and agree >= 0.6 * len(said)
