"""Find exactly one place for every hunk of a file: first by an exact match, then by less and less exact ones."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from redstart.core.change import EditFit
from redstart.toolkit.patching.fitting.locations import (
    IndexedLines,
    find_variants,
    get_indentation,
    is_exact_match,
    is_loose_match,
)
from redstart.toolkit.patching.hunks import COMES, GOES, STAYS, DiffHunk, HunkLine, LineReplacement, is_elision

MOST_WAYS = 64


def adopt_indentation(
    page: IndexedLines, hunk: DiffHunk, parses: Callable[[int, DiffHunk], bool]
) -> list[tuple[DiffHunk, int]]:
    """Adopt the file's indentation, for each place where the hunk's old lines match except for indentation.

    `parses` tells whether the file parses with the hunk at that place. Of several ways to indent the added lines,
    the result is the only one that parses; if several parse, the hunk fits nowhere.
    """
    placements: list[tuple[DiffHunk, int]] = []
    for start in page.find_matches(hunk.old, lambda line, file_line: line.text.strip() == file_line.strip()):
        variants = _list_variants(page.lines[start : start + len(hunk.old)], hunk)
        fitting = {variant.new: variant for variant in variants if parses(start, variant)}
        if len(fitting) == 1:
            placements.append((next(iter(fitting.values())), start))
        elif fitting:
            return []
    return placements


def _list_variants(file_lines: Sequence[str], hunk: DiffHunk) -> list[DiffHunk]:
    """List indented variants, as if the same number of spaces had been cut from every line, or as many as it had.

    A line that still has some then lost exactly that number; for a line with none the number is open.
    """
    lost_spaces: dict[bool, set[int]] = {True: set(), False: set()}
    for line, file_line in zip(hunk.old, file_lines, strict=True):
        if "\t" in get_indentation(line.text) + get_indentation(file_line):
            return []
        if file_line.strip():
            lost_spaces[bool(get_indentation(line.text))].add(
                len(get_indentation(file_line)) - len(get_indentation(line.text))
            )
    max_lost = max(lost_spaces[True] | lost_spaces[False], default=0)
    if max_lost <= 0 or lost_spaces[True] - {max_lost} or min(lost_spaces[False], default=0) < 0:
        return []
    amounts = sorted(lost_spaces[False] | {max_lost})
    added = [line for line in hunk.lines if line.mark == COMES and line.text.strip()]
    choices = [[max_lost] if get_indentation(line.text) else amounts for line in added]
    if prod(map(len, choices)) > MOST_WAYS:
        return []
    return [_indent_lines(file_lines, hunk, shifts) for shifts in product(*choices)]


def _indent_lines(file_lines: Sequence[str], hunk: DiffHunk, shifts: Sequence[int]) -> DiffHunk:
    lines: list[HunkLine] = []
    old, remaining_shifts = iter(file_lines), iter(shifts)
    for line in hunk.lines:
        if line.mark != COMES:
            lines.append(HunkLine(line.mark, next(old)))
        elif not line.text.strip():
            lines.append(line)
        else:
            depth = max(len(get_indentation(line.text)) + next(remaining_shifts), 0)
            lines.append(HunkLine(COMES, " " * depth + line.text.lstrip()))
    return hunk._replace(lines=tuple(lines))


MAX_LINE_DIFFERENCE = 4
"""How many lines a hunk may miss or have in excess."""
NEVER = 1e9
_SIMILAR = 0.7
_DIAGONALS = 12


class HunkAlignment(NamedTuple):
    """The position of each old line; None for a context line that is not in the file."""

    positions: tuple[int | None, ...]
    faults: int
    tail_differs: bool
    """Whether the last line differs, but the file's line begins with it."""


def find_alignments(page: IndexedLines, hunk: DiffHunk) -> list[HunkAlignment]:
    """Find every alignment of the hunk with the file that has few enough faults, each place once."""
    old = hunk.old
    by_position: dict[tuple[int | None, ...], HunkAlignment] = {}
    for diagonal in _find_diagonals(page, old):
        low = max(diagonal - MAX_LINE_DIFFERENCE, 0)
        high = min(diagonal + len(old) + MAX_LINE_DIFFERENCE, len(page.lines))
        alignment = _align(page.lines[low:high], old, low)
        if alignment is not None and _is_good(page, old, alignment):
            by_position[
                tuple(position if old[n].mark == GOES else None for n, position in enumerate(alignment.positions))
                + alignment.positions
            ] = alignment
    return list(by_position.values())


def build_spans(page: IndexedLines, hunk: DiffHunk, positions: Sequence[int | None]) -> list[LineReplacement] | None:
    """Convert the change to spans of the file; None if the lines on both sides do not determine an insertion point."""
    replacements: list[LineReplacement] = []
    number, lines = 0, list(hunk.lines)
    while number < len(lines):
        if lines[number].mark == STAYS:
            number += 1
            continue
        end = number
        while end < len(lines) and lines[end].mark != STAYS:
            end += 1
        span = _build_span(page, hunk, positions, number, end)
        if span is None:
            return None
        replacements.append(span)
        number = end
    return replacements


def _build_span(
    page: IndexedLines, hunk: DiffHunk, positions: Sequence[int | None], begin: int, end: int
) -> LineReplacement | None:
    run = hunk.lines[begin:end]
    first_old = sum(line.mark != COMES for line in hunk.lines[:begin])
    removed = [positions[first_old + n] for n in range(sum(line.mark == GOES for line in run))]
    new = tuple(line.text for line in run if line.mark == COMES)
    if removed:
        present = [place for place in removed if place is not None]
        if len(present) != len(removed) or present[-1] - present[0] + 1 != len(present):
            return None
        neighbors = (
            (positions[first_old - 1] if first_old else None),
            (positions[first_old + len(removed)] if first_old + len(removed) < len(positions) else None),
        )
        has_gap = neighbors[0] not in (None, present[0] - 1) or neighbors[1] not in (None, present[-1] + 1)
        if has_gap and new and not _is_line_by_line(run):
            return None
        return LineReplacement(present[0], present[-1] + 1, new)
    before = positions[first_old - 1] if first_old else -2
    after = positions[first_old] if first_old < len(positions) else -2
    if before is None or after is None or before == after:
        return None
    if before == -2:
        return LineReplacement(after, after, new)
    if after in (-2, before + 1):
        return LineReplacement(before + 1, before + 1, new) if before < len(page.lines) else None
    return None


def _is_line_by_line(run: Sequence[HunkLine]) -> bool:
    """Return whether each added line is a variant of a removed one, and so belongs in its place."""
    removed = [line.text for line in run if line.mark == GOES]
    added = [line.text for line in run if line.mark == COMES]
    return len(removed) == len(added) and all(
        _is_similar(item, other) for item, other in zip(removed, added, strict=True)
    )


def _is_similar(left: str, right: str) -> bool:
    matcher = difflib.SequenceMatcher(None, left.strip(), right.strip(), autojunk=False)
    return matcher.quick_ratio() >= _SIMILAR and matcher.ratio() >= _SIMILAR


def _find_diagonals(page: IndexedLines, old: Sequence[HunkLine]) -> list[int]:
    """Return the offsets between hunk and file at which most lines agree."""
    votes: Counter[int] = Counter()
    for number, line in enumerate(old):
        places = page.find_lines(line.text) if line.text.strip() else ()
        if len(places) <= 40:
            votes.update(place - number for place in places)
    return [diagonal for diagonal, _ in votes.most_common(_DIAGONALS)]


def _align(file_lines: Sequence[str], old: Sequence[HunkLine], low: int) -> HunkAlignment | None:
    """Find the cheapest alignment in a window: skipped lines of the file are free outside the hunk and cost inside."""
    rows, columns = len(old), len(file_lines)
    cost = [[0.0] * (columns + 1)] + [[NEVER] * (columns + 1) for _ in range(rows)]
    for row in range(1, rows + 1):
        line = old[row - 1]
        absence_cost = NEVER if line.mark == GOES else (0.4 if not line.text.strip() else 1.3)
        for column in range(columns + 1):
            best_cost = cost[row - 1][column] + absence_cost
            if column:
                best_cost = min(best_cost, cost[row - 1][column - 1] + _price(line, file_lines[column - 1]))
                skip = 0.0 if row == rows else (0.5 if not file_lines[column - 1].strip() else 1.0)
                best_cost = min(best_cost, cost[row][column - 1] + skip)
            cost[row][column] = best_cost
    if cost[rows][columns] >= NEVER:
        return None
    return _trace_alignment(cost, file_lines, old, low)


def _trace_alignment(
    cost: list[list[float]], file_lines: Sequence[str], old: Sequence[HunkLine], low: int
) -> HunkAlignment:
    positions: list[int | None] = [None] * len(old)
    faults = 0
    tail_differs = False
    row, column = len(old), len(file_lines)
    while row:
        line = old[row - 1]
        current_cost = cost[row][column]
        if (
            column
            and abs(current_cost - cost[row - 1][column - 1] - (price := _price(line, file_lines[column - 1]))) < 1e-6
        ):
            positions[row - 1] = low + column - 1
            faults += price > 0
            tail_differs = tail_differs or (
                price > 0 and row == len(old) and file_lines[column - 1].startswith(line.text.rstrip())
            )
            row, column = row - 1, column - 1
        elif column and _is_skipped(cost, file_lines, row, column, len(old)):
            faults += row != len(old)
            column -= 1
        else:
            faults += bool(line.text.strip())
            row -= 1
    return HunkAlignment(tuple(positions), faults, tail_differs)


def _is_skipped(cost: list[list[float]], file_lines: Sequence[str], row: int, column: int, rows: int) -> bool:
    skip = 0.0 if row == rows else (0.5 if not file_lines[column - 1].strip() else 1.0)
    return abs(cost[row][column] - cost[row][column - 1] - skip) < 1e-6


def _price(line: HunkLine, file_line: str) -> float:
    if is_loose_match(line, file_line):
        return 0.0
    if line.mark == GOES or not line.text.strip() or not file_line.strip():
        return NEVER
    if get_indentation(line.text) != get_indentation(file_line):
        return NEVER  # the added lines may have the same wrong indentation
    return 0.9 if _is_similar(line.text, file_line) else NEVER


def _is_good(page: IndexedLines, old: Sequence[HunkLine], alignment: HunkAlignment) -> bool:
    """Return whether many lines agree and few do not."""
    pairs = [(line, position) for line, position in zip(old, alignment.positions, strict=True) if line.text.strip()]
    agreeing = sum(position is not None and is_loose_match(line, page.lines[position]) for line, position in pairs)
    return agreeing >= 2 and alignment.faults <= 1 + len(pairs) // 5 and agreeing >= 0.6 * len(pairs)


Judge = Callable[[Sequence[LineReplacement]], bool]
"""Returns whether the file still parses with its old indentation; True for files that did not parse."""

MOST_PLACES = 200


class HunkPlace(NamedTuple):
    """One possible place for a hunk."""

    start: int
    """The line, from 0, of the hunk's first old line."""
    spans: tuple[LineReplacement, ...]
    is_last_line_partial: bool = False
    """Whether its last line is only the beginning of the file's line."""


class HunkPlaces(NamedTuple):
    fit: EditFit
    places: tuple[HunkPlace, ...]
    is_already_applied: bool = False
    """Whether the hunk's result is in the file and its old lines are not."""


def find_places(page: IndexedLines, hunk: DiffHunk, judge: Judge) -> HunkPlaces:
    """Find the places on the lowest rung that has any."""
    old = hunk.old
    for fit, is_equal in ((EditFit.exact, is_exact_match), (EditFit.whitespace, is_loose_match)):
        if starts := page.find_matches(old, is_equal):
            return HunkPlaces(fit, tuple(_place_contiguously(page, hunk, start) for start in starts[:MOST_PLACES]))
    if is_already_present(page, hunk):
        return HunkPlaces(EditFit.exact, (), is_already_applied=True)
    if variants := find_variants(page, hunk):
        return HunkPlaces(
            EditFit.whitespace,
            tuple(_place_contiguously(page, variant, start) for variant, start in variants[:MOST_PLACES]),
        )
    if any(is_elision(line.text) for line in hunk.lines):
        return HunkPlaces(EditFit.realign, _place_around_gaps(page, hunk))
    if any(line.mark != COMES and line.text.strip() for line in hunk.lines):
        indented = adopt_indentation(
            page, hunk, lambda start, variant: judge(_place_contiguously(page, variant, start).spans)
        )
        if indented:
            return HunkPlaces(
                EditFit.whitespace, tuple(_place_contiguously(page, variant, start) for variant, start in indented)
            )
    if stitched := _stitch_parts(page, hunk):
        return HunkPlaces(EditFit.realign, (stitched,))
    return HunkPlaces(EditFit.merge, _find_merged(page, hunk))


def is_already_present(page: IndexedLines, hunk: DiffHunk) -> bool:
    """Return whether the file already contains the hunk's result, line for line."""
    adds = any(line.mark == COMES and line.text.strip() for line in hunk.lines)
    removes = any(line.mark == GOES for line in hunk.lines)
    is_enclosed = bool(hunk.lines) and hunk.lines[0].mark == hunk.lines[-1].mark == STAYS
    return (adds or (removes and is_enclosed)) and bool(page.find_matches(hunk.new, is_loose_match))


def is_made_already(page: IndexedLines, hunk: DiffHunk, hunk_places: HunkPlaces, start: int) -> bool:
    """Return whether the hunk's result is already where the hunk would apply: it may have been applied before.

    An exact match at only one place is certain: lines deleted at one end always leave the others. Only added lines
    that are already there count against it. If a hunk counts its lines correctly and is where it says, a result
    entirely within the lines to change does not count.
    """
    stop = start + len(hunk.old)
    result = hunk.new
    is_certain = hunk_places.fit is EditFit.exact and len(hunk_places.places) == 1
    is_located = hunk.counted_right and hunk.start == start + 1

    def is_conflict(place: int) -> bool:
        end = place + len(result)
        if is_certain:
            return place <= start and end >= stop
        return place < stop and end > start and not (is_located and start <= place and end <= stop)

    return any(is_conflict(place) for place in page.find_matches(result, is_loose_match))


def _place_contiguously(page: IndexedLines, hunk: DiffHunk, start: int) -> HunkPlace:
    replacements = build_spans(page, hunk, range(start, start + len(hunk.old)))
    return HunkPlace(start, tuple(replacements or ()))


def _find_merged(page: IndexedLines, hunk: DiffHunk) -> tuple[HunkPlace, ...]:
    by_spans: dict[tuple[LineReplacement, ...], HunkPlace] = {}
    for alignment in find_alignments(page, hunk):
        replacements = build_spans(page, hunk, alignment.positions)
        if replacements is None:
            continue
        start = next(position - number for number, position in enumerate(alignment.positions) if position is not None)
        by_spans[tuple(replacements)] = HunkPlace(start, tuple(replacements), alignment.tail_differs)
    return tuple(by_spans.values())


def _place_around_gaps(page: IndexedLines, hunk: DiffHunk) -> tuple[HunkPlace, ...]:
    """Find the places of a hunk that omits lines (`...`): its parts in order, each unchanged."""
    parts = _split_parts(hunk)
    if parts is None:
        return ()
    places: list[list[int]] = []
    for part in parts:
        matches = page.find_matches(part.old, is_exact_match) or page.find_matches(part.old, is_loose_match)
        if not matches or len(matches) > 20:
            return ()
        places.append(matches)
    by_spans: dict[tuple[LineReplacement, ...], HunkPlace] = {}
    for starts in product(*places):
        ends = [start + len(part.old) for start, part in zip(starts, parts, strict=True)]
        if all(end <= start for end, start in zip(ends, starts[1:], strict=False)):
            combined = [
                span
                for start, part in zip(starts, parts, strict=True)
                for span in _place_contiguously(page, part, start).spans
            ]
            by_spans[tuple(combined)] = HunkPlace(starts[0], tuple(combined))
    return tuple(by_spans.values())


def _stitch_parts(page: IndexedLines, hunk: DiffHunk) -> HunkPlace | None:
    """Find the place of a hunk merged from several: cut it where its context leaves the file, and place each part."""
    remaining, position, first_start = hunk.lines, 0, None
    replacements: list[LineReplacement] = []
    while remaining:
        length = next(
            (
                n
                for n in range(len(remaining), 0, -1)
                if _can_cut(remaining, n) and page.find_matches(_get_old_lines(remaining[:n]), is_loose_match)
            ),
            0,
        )
        part = DiffHunk(remaining[:length])
        places = page.find_matches(part.old, is_loose_match)
        if len(places) != 1 or places[0] < position or sum(bool(line.text.strip()) for line in part.old) < 2:
            return None
        replacements += _place_contiguously(page, part, places[0]).spans
        first_start = places[0] if first_start is None else first_start
        position, remaining = places[0] + len(part.old), remaining[length:]
    return None if first_start is None else HunkPlace(first_start, tuple(replacements))


def _get_old_lines(lines: Sequence[HunkLine]) -> tuple[HunkLine, ...]:
    return DiffHunk(tuple(lines)).old


def _can_cut(lines: Sequence[HunkLine], index: int) -> bool:
    """Return whether a hunk may be cut there: between two context lines."""
    return index == len(lines) or lines[index - 1].mark == lines[index].mark == STAYS


def _split_parts(hunk: DiffHunk) -> list[DiffHunk] | None:
    """Cut the hunk at the lines that stand for omitted ones; None if omitted lines would be removed or added."""
    parts: list[DiffHunk] = []
    start = 0
    lines = hunk.lines
    for number, line in enumerate(lines):
        if not is_elision(line.text):
            continue
        if line.mark != STAYS:
            return None
        parts.append(DiffHunk(lines[start:number]))
        start = number + 1
    parts.append(DiffHunk(lines[start:]))
    relevant = [part for part in parts if part.changes or any(line.text.strip() for line in part.lines)]
    return relevant if all(any(line.text.strip() for line in part.old) for part in relevant) else None
