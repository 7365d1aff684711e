"""Finding the one place for every hunk of a file, rung by rung."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

from redstart.core.change import Rung
from redstart.toolkit.patching.fitting.align import alignments, spans
from redstart.toolkit.patching.fitting.indentation import reindented
from redstart.toolkit.patching.fitting.places import Page, bends, exactly, loosely
from redstart.toolkit.patching.hunks import COMES, GOES, STAYS, Hunk, Line, elision
from redstart.toolkit.patching.text import Span

Judge = Callable[[Sequence[Span]], bool]
"""Whether the file is still a program, indented as it was; says yes of files that are none."""

MOST_PLACES = 200


class Option(NamedTuple):
    """One place for a hunk."""

    start: int
    """The line, from 0, where the hunk's first old line stands."""
    spans: tuple[Span, ...]
    cut: bool = False
    """Its last line is only the beginning of the line that is there."""


class Options(NamedTuple):
    rung: Rung
    places: tuple[Option, ...]
    already: bool = False
    """What the hunk would make is there, and what it would change is not."""


def options(page: Page, hunk: Hunk, judge: Judge) -> Options:
    """The places of the lowest rung that has one."""
    old = hunk.old
    for rung, same in ((Rung.exact, exactly), (Rung.whitespace, loosely)):
        if found := page.matches(old, same):
            return Options(rung, tuple(_contiguous(page, hunk, start) for start in found[:MOST_PLACES]))
    if there_already(page, hunk):
        return Options(Rung.exact, (), already=True)
    if bent := bends(page, hunk):
        return Options(Rung.whitespace, tuple(_contiguous(page, way, start) for way, start in bent[:MOST_PLACES]))
    if any(elision(line.text) for line in hunk.lines):
        return Options(Rung.realign, _around_gaps(page, hunk))
    if any(line.mark != COMES and line.text.strip() for line in hunk.lines):
        indented = reindented(page, hunk, lambda start, way: judge(_contiguous(page, way, start).spans))
        if indented:
            return Options(Rung.whitespace, tuple(_contiguous(page, way, start) for way, start in indented))
    if stitched := _stitched(page, hunk):
        return Options(Rung.realign, (stitched,))
    return Options(Rung.merge, _merged(page, hunk))


def there_already(page: Page, hunk: Hunk) -> bool:
    """Whether the file holds, line for line, what the hunk would make of it."""
    told = any(line.mark == COMES and line.text.strip() for line in hunk.lines)
    removes = any(line.mark == GOES for line in hunk.lines)
    both = bool(hunk.lines) and hunk.lines[0].mark == hunk.lines[-1].mark == STAYS
    return (told or (removes and both)) and bool(page.matches(hunk.new, loosely))


def is_made_already(page: Page, hunk: Hunk, found: Options, start: int) -> bool:
    """Whether the result of the hunk stands where the hunk would be applied: it may have been applied before.

    An exact match at one place alone is certain: lines deleted at one end always leave the others. Only added lines
    that are there already speak against it. Of a hunk that counts its lines correctly and stands where it says, a
    result that stands wholly among the lines to change says nothing.
    """
    stop = start + len(hunk.old)
    result = hunk.new
    is_certain = found.rung is Rung.exact and len(found.places) == 1
    is_located = hunk.counted_right and hunk.start == start + 1

    def speaks_against(place: int) -> bool:
        end = place + len(result)
        if is_certain:
            return place <= start and end >= stop
        return place < stop and end > start and not (is_located and start <= place and end <= stop)

    return any(speaks_against(place) for place in page.matches(result, loosely))


def _contiguous(page: Page, hunk: Hunk, start: int) -> Option:
    made = spans(page, hunk, range(start, start + len(hunk.old)))
    return Option(start, tuple(made or ()))


def _merged(page: Page, hunk: Hunk) -> tuple[Option, ...]:
    found: dict[tuple[Span, ...], Option] = {}
    for aligned in alignments(page, hunk):
        made = spans(page, hunk, aligned.at)
        if made is None:
            continue
        start = next(at - number for number, at in enumerate(aligned.at) if at is not None)
        found[tuple(made)] = Option(start, tuple(made), aligned.tail_differs)
    return tuple(found.values())


def _around_gaps(page: Page, hunk: Hunk) -> tuple[Option, ...]:
    """The places of a hunk that leaves lines out (`...`): its parts in order, each as it stands."""
    parts = _parts(hunk)
    if parts is None:
        return ()
    places: list[list[int]] = []
    for part in parts:
        found = page.matches(part.old, exactly) or page.matches(part.old, loosely)
        if not found or len(found) > 20:
            return ()
        places.append(found)
    made: dict[tuple[Span, ...], Option] = {}
    for starts in product(*places):
        ends = [start + len(part.old) for start, part in zip(starts, parts, strict=True)]
        if all(end <= start for end, start in zip(ends, starts[1:], strict=False)):
            together = [
                span for start, part in zip(starts, parts, strict=True) for span in _contiguous(page, part, start).spans
            ]
            made[tuple(together)] = Option(starts[0], tuple(together))
    return tuple(made.values())


def _stitched(page: Page, hunk: Hunk) -> Option | None:
    """The place of a hunk that was made of several: cut where its context stops being the file's, each part alone."""
    rest, at, first = hunk.lines, 0, None
    made: list[Span] = []
    while rest:
        cut = next((n for n in range(len(rest), 0, -1) if _cuts(rest, n) and page.matches(_old(rest[:n]), loosely)), 0)
        part = Hunk(rest[:cut])
        places = page.matches(part.old, loosely)
        if len(places) != 1 or places[0] < at or sum(bool(line.text.strip()) for line in part.old) < 2:
            return None
        made += _contiguous(page, part, places[0]).spans
        first = places[0] if first is None else first
        at, rest = places[0] + len(part.old), rest[cut:]
    return None if first is None else Option(first, tuple(made))


def _old(lines: Sequence[Line]) -> tuple[Line, ...]:
    return Hunk(tuple(lines)).old


def _cuts(lines: Sequence[Line], at: int) -> bool:
    """Whether a hunk may be cut there: between two lines that stay."""
    return at == len(lines) or lines[at - 1].mark == lines[at].mark == STAYS


def _parts(hunk: Hunk) -> list[Hunk] | None:
    """The hunk cut at the lines that stand for others; None where what is left out would be removed or made."""
    parts: list[Hunk] = []
    begun = 0
    lines = hunk.lines
    for number, line in enumerate(lines):
        if not elision(line.text):
            continue
        if line.mark != STAYS:
            return None
        parts.append(Hunk(lines[begun:number]))
        begun = number + 1
    parts.append(Hunk(lines[begun:]))
    kept = [part for part in parts if part.changes or any(line.text.strip() for line in part.lines)]
    return kept if all(any(line.text.strip() for line in part.old) for part in kept) else None
