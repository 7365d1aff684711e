"""Finds exactly one place for every hunk of a file, rung by rung."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from redstart.core.change import EditFit
from redstart.toolkit.patching.fitting.places import IndexedLines, bends, exactly, leading, loosely
from redstart.toolkit.patching.hunks import COMES, GOES, STAYS, DiffHunk, HunkLine, LineReplacement, elision

MOST_WAYS = 64


def reindented(
    page: IndexedLines, hunk: DiffHunk, parses: Callable[[int, DiffHunk], bool]
) -> list[tuple[DiffHunk, int]]:
    """Adopt the file's indentation, for each place where the hunk's old lines match except for indentation.

    `parses` tells whether the file parses with the hunk at that place. Of several ways to indent the added lines,
    the result is the only one that parses; if several parse, the hunk fits nowhere.
    """
    found: list[tuple[DiffHunk, int]] = []
    for start in page.matches(hunk.old, lambda line, real: line.text.strip() == real.strip()):
        ways = _ways(page.lines[start : start + len(hunk.old)], hunk)
        fitting = {way.new: way for way in ways if parses(start, way)}
        if len(fitting) == 1:
            found.append((next(iter(fitting.values())), start))
        elif fitting:
            return []
    return found


def _ways(real: Sequence[str], hunk: DiffHunk) -> list[DiffHunk]:
    """List indented variants, as if the same number of spaces had been cut from every line, or as many as it had.

    A line that still has some then lost exactly that number; for a line with none the number is open.
    """
    lost: dict[bool, set[int]] = {True: set(), False: set()}
    for line, there in zip(hunk.old, real, strict=True):
        if "\t" in leading(line.text) + leading(there):
            return []
        if there.strip():
            lost[bool(leading(line.text))].add(len(leading(there)) - len(leading(line.text)))
    most = max(lost[True] | lost[False], default=0)
    if most <= 0 or lost[True] - {most} or min(lost[False], default=0) < 0:
        return []
    open_ones = sorted(lost[False] | {most})
    coming = [line for line in hunk.lines if line.mark == COMES and line.text.strip()]
    choices = [[most] if leading(line.text) else open_ones for line in coming]
    if prod(map(len, choices)) > MOST_WAYS:
        return []
    return [_with(real, hunk, moves) for moves in product(*choices)]


def _with(real: Sequence[str], hunk: DiffHunk, moves: Sequence[int]) -> DiffHunk:
    lines: list[HunkLine] = []
    old, coming = iter(real), iter(moves)
    for line in hunk.lines:
        if line.mark != COMES:
            lines.append(HunkLine(line.mark, next(old)))
        elif not line.text.strip():
            lines.append(line)
        else:
            depth = max(len(leading(line.text)) + next(coming), 0)
            lines.append(HunkLine(COMES, " " * depth + line.text.lstrip()))
    return hunk._replace(lines=tuple(lines))


AROUND = 4
"""How many lines a hunk may miss or have in excess."""
NEVER = 1e9
_SIMILAR = 0.7
_DIAGONALS = 12


class HunkAlignment(NamedTuple):
    """The position of each old line; None for a context line that is not in the file."""

    at: tuple[int | None, ...]
    faults: int
    tail_differs: bool
    """Whether the last line differs, but the file's line begins with it."""


def alignments(page: IndexedLines, hunk: DiffHunk) -> list[HunkAlignment]:
    """Find every alignment of the hunk with the file that has few enough faults, each place once."""
    old = hunk.old
    found: dict[tuple[int | None, ...], HunkAlignment] = {}
    for diagonal in _diagonals(page, old):
        low = max(diagonal - AROUND, 0)
        high = min(diagonal + len(old) + AROUND, len(page.lines))
        aligned = _align(page.lines[low:high], old, low)
        if aligned is not None and _good(page, old, aligned):
            found[tuple(at if old[n].mark == GOES else None for n, at in enumerate(aligned.at)) + aligned.at] = aligned
    return list(found.values())


def spans(page: IndexedLines, hunk: DiffHunk, at: Sequence[int | None]) -> list[LineReplacement] | None:
    """Convert the change to spans of the file; None if the lines on both sides do not determine an insertion point."""
    made: list[LineReplacement] = []
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


def _span(page: IndexedLines, hunk: DiffHunk, at: Sequence[int | None], begin: int, end: int) -> LineReplacement | None:
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
        return LineReplacement(real[0], real[-1] + 1, new)
    before = at[first_old - 1] if first_old else -2
    after = at[first_old] if first_old < len(at) else -2
    if before is None or after is None or before == after:
        return None
    if before == -2:
        return LineReplacement(after, after, new)
    if after in (-2, before + 1):
        return LineReplacement(before + 1, before + 1, new) if before < len(page.lines) else None
    return None


def _one_by_one(run: Sequence[HunkLine]) -> bool:
    """Return whether each added line is a variant of a removed one, and so belongs in its place."""
    gone = [line.text for line in run if line.mark == GOES]
    coming = [line.text for line in run if line.mark == COMES]
    return len(gone) == len(coming) and all(_alike(item, other) for item, other in zip(gone, coming, strict=True))


def _alike(one: str, other: str) -> bool:
    matcher = difflib.SequenceMatcher(None, one.strip(), other.strip(), autojunk=False)
    return matcher.quick_ratio() >= _SIMILAR and matcher.ratio() >= _SIMILAR


def _diagonals(page: IndexedLines, old: Sequence[HunkLine]) -> list[int]:
    """Return the offsets between hunk and file at which most lines agree."""
    votes: Counter[int] = Counter()
    for number, line in enumerate(old):
        places = page.where(line.text) if line.text.strip() else ()
        if len(places) <= 40:
            votes.update(place - number for place in places)
    return [diagonal for diagonal, _ in votes.most_common(_DIAGONALS)]


def _align(real: Sequence[str], old: Sequence[HunkLine], low: int) -> HunkAlignment | None:
    """Find the cheapest alignment in a window: skipped lines of the file are free outside the hunk and cost inside."""
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


def _traced(cost: list[list[float]], real: Sequence[str], old: Sequence[HunkLine], low: int) -> HunkAlignment:
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
    return HunkAlignment(tuple(at), faults, tail)


def _skipped(cost: list[list[float]], real: Sequence[str], row: int, column: int, rows: int) -> bool:
    skip = 0.0 if row == rows else (0.5 if not real[column - 1].strip() else 1.0)
    return abs(cost[row][column] - cost[row][column - 1] - skip) < 1e-6


def _price(line: HunkLine, real: str) -> float:
    if loosely(line, real):
        return 0.0
    if line.mark == GOES or not line.text.strip() or not real.strip():
        return NEVER
    if leading(line.text) != leading(real):
        return NEVER  # the added lines may have the same wrong indentation
    return 0.9 if _alike(line.text, real) else NEVER


def _good(page: IndexedLines, old: Sequence[HunkLine], aligned: HunkAlignment) -> bool:
    """Return whether many lines agree and few do not."""
    said = [(line, at) for line, at in zip(old, aligned.at, strict=True) if line.text.strip()]
    agree = sum(at is not None and loosely(line, page.lines[at]) for line, at in said)
    return agree >= 2 and aligned.faults <= 1 + len(said) // 5 and agree >= 0.6 * len(said)


Judge = Callable[[Sequence[LineReplacement]], bool]
"""Returns whether the file still parses with its old indentation; True for files that did not parse."""

MOST_PLACES = 200


class HunkPlace(NamedTuple):
    """One possible place for a hunk."""

    start: int
    """The line, from 0, of the hunk's first old line."""
    spans: tuple[LineReplacement, ...]
    cut: bool = False
    """Whether its last line is only the beginning of the file's line."""


class HunkPlaces(NamedTuple):
    rung: EditFit
    places: tuple[HunkPlace, ...]
    already: bool = False
    """Whether the hunk's result is in the file and its old lines are not."""


def options(page: IndexedLines, hunk: DiffHunk, judge: Judge) -> HunkPlaces:
    """Find the places on the lowest rung that has any."""
    old = hunk.old
    for rung, same in ((EditFit.exact, exactly), (EditFit.whitespace, loosely)):
        if found := page.matches(old, same):
            return HunkPlaces(rung, tuple(_contiguous(page, hunk, start) for start in found[:MOST_PLACES]))
    if there_already(page, hunk):
        return HunkPlaces(EditFit.exact, (), already=True)
    if bent := bends(page, hunk):
        return HunkPlaces(EditFit.whitespace, tuple(_contiguous(page, way, start) for way, start in bent[:MOST_PLACES]))
    if any(elision(line.text) for line in hunk.lines):
        return HunkPlaces(EditFit.realign, _around_gaps(page, hunk))
    if any(line.mark != COMES and line.text.strip() for line in hunk.lines):
        indented = reindented(page, hunk, lambda start, way: judge(_contiguous(page, way, start).spans))
        if indented:
            return HunkPlaces(EditFit.whitespace, tuple(_contiguous(page, way, start) for way, start in indented))
    if stitched := _stitched(page, hunk):
        return HunkPlaces(EditFit.realign, (stitched,))
    return HunkPlaces(EditFit.merge, _merged(page, hunk))


def there_already(page: IndexedLines, hunk: DiffHunk) -> bool:
    """Return whether the file already contains the hunk's result, line for line."""
    told = any(line.mark == COMES and line.text.strip() for line in hunk.lines)
    removes = any(line.mark == GOES for line in hunk.lines)
    both = bool(hunk.lines) and hunk.lines[0].mark == hunk.lines[-1].mark == STAYS
    return (told or (removes and both)) and bool(page.matches(hunk.new, loosely))


def is_made_already(page: IndexedLines, hunk: DiffHunk, found: HunkPlaces, start: int) -> bool:
    """Return whether the hunk's result is already where the hunk would apply: it may have been applied before.

    An exact match at only one place is certain: lines deleted at one end always leave the others. Only added lines
    that are already there count against it. If a hunk counts its lines correctly and is where it says, a result
    entirely within the lines to change does not count.
    """
    stop = start + len(hunk.old)
    result = hunk.new
    is_certain = found.rung is EditFit.exact and len(found.places) == 1
    is_located = hunk.counted_right and hunk.start == start + 1

    def speaks_against(place: int) -> bool:
        end = place + len(result)
        if is_certain:
            return place <= start and end >= stop
        return place < stop and end > start and not (is_located and start <= place and end <= stop)

    return any(speaks_against(place) for place in page.matches(result, loosely))


def _contiguous(page: IndexedLines, hunk: DiffHunk, start: int) -> HunkPlace:
    made = spans(page, hunk, range(start, start + len(hunk.old)))
    return HunkPlace(start, tuple(made or ()))


def _merged(page: IndexedLines, hunk: DiffHunk) -> tuple[HunkPlace, ...]:
    found: dict[tuple[LineReplacement, ...], HunkPlace] = {}
    for aligned in alignments(page, hunk):
        made = spans(page, hunk, aligned.at)
        if made is None:
            continue
        start = next(at - number for number, at in enumerate(aligned.at) if at is not None)
        found[tuple(made)] = HunkPlace(start, tuple(made), aligned.tail_differs)
    return tuple(found.values())


def _around_gaps(page: IndexedLines, hunk: DiffHunk) -> tuple[HunkPlace, ...]:
    """Find the places of a hunk that omits lines (`...`): its parts in order, each unchanged."""
    parts = _parts(hunk)
    if parts is None:
        return ()
    places: list[list[int]] = []
    for part in parts:
        found = page.matches(part.old, exactly) or page.matches(part.old, loosely)
        if not found or len(found) > 20:
            return ()
        places.append(found)
    made: dict[tuple[LineReplacement, ...], HunkPlace] = {}
    for starts in product(*places):
        ends = [start + len(part.old) for start, part in zip(starts, parts, strict=True)]
        if all(end <= start for end, start in zip(ends, starts[1:], strict=False)):
            together = [
                span for start, part in zip(starts, parts, strict=True) for span in _contiguous(page, part, start).spans
            ]
            made[tuple(together)] = HunkPlace(starts[0], tuple(together))
    return tuple(made.values())


def _stitched(page: IndexedLines, hunk: DiffHunk) -> HunkPlace | None:
    """Find the place of a hunk merged from several: cut it where its context leaves the file, and place each part."""
    rest, at, first = hunk.lines, 0, None
    made: list[LineReplacement] = []
    while rest:
        cut = next((n for n in range(len(rest), 0, -1) if _cuts(rest, n) and page.matches(_old(rest[:n]), loosely)), 0)
        part = DiffHunk(rest[:cut])
        places = page.matches(part.old, loosely)
        if len(places) != 1 or places[0] < at or sum(bool(line.text.strip()) for line in part.old) < 2:
            return None
        made += _contiguous(page, part, places[0]).spans
        first = places[0] if first is None else first
        at, rest = places[0] + len(part.old), rest[cut:]
    return None if first is None else HunkPlace(first, tuple(made))


def _old(lines: Sequence[HunkLine]) -> tuple[HunkLine, ...]:
    return DiffHunk(tuple(lines)).old


def _cuts(lines: Sequence[HunkLine], at: int) -> bool:
    """Return whether a hunk may be cut there: between two context lines."""
    return at == len(lines) or lines[at - 1].mark == lines[at].mark == STAYS


def _parts(hunk: DiffHunk) -> list[DiffHunk] | None:
    """Cut the hunk at the lines that stand for omitted ones; None if omitted lines would be removed or added."""
    parts: list[DiffHunk] = []
    begun = 0
    lines = hunk.lines
    for number, line in enumerate(lines):
        if not elision(line.text):
            continue
        if line.mark != STAYS:
            return None
        parts.append(DiffHunk(lines[begun:number]))
        begun = number + 1
    parts.append(DiffHunk(lines[begun:]))
    kept = [part for part in parts if part.changes or any(line.text.strip() for line in part.lines)]
    return kept if all(any(line.text.strip() for line in part.old) for part in kept) else None
