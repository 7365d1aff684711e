"""Indentation that was damaged unevenly: taken back only where one way alone gives a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from redstart.toolkit.patching.fitting.places import Page
from redstart.toolkit.patching.fitting.variations import leading
from redstart.toolkit.patching.hunks import COMES, Hunk, Line

MOST_WAYS = 64


def reindented(page: Page, hunk: Hunk, parses: Callable[[int, Hunk], bool]) -> list[tuple[Hunk, int]]:
    """The hunk with its indentation taken from the file, for each place where its old lines stand but for it.

    `parses` tells whether the file is a program with the hunk at that place. Of several ways to
    move what comes, only one that parses is taken, and only if it is alone.
    """
    found: list[tuple[Hunk, int]] = []
    for start in page.matches(hunk.old, lambda line, real: line.text.strip() == real.strip()):
        ways = _ways(page.lines[start : start + len(hunk.old)], hunk)
        fitting = {way.new: way for way in ways if parses(start, way)}
        if len(fitting) == 1:
            found.append((next(iter(fitting.values())), start))
        elif fitting:
            return []
    return found


def _ways(real: Sequence[str], hunk: Hunk) -> list[Hunk]:
    """As if the same number of blanks had been cut from every line, or as many as it had.

    Then a line that still has some lost them all, and of one that has none it is open.
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


def _with(real: Sequence[str], hunk: Hunk, moves: Sequence[int]) -> Hunk:
    lines: list[Line] = []
    old, coming = iter(real), iter(moves)
    for line in hunk.lines:
        if line.mark != COMES:
            lines.append(Line(line.mark, next(old)))
        elif not line.text.strip():
            lines.append(line)
        else:
            depth = max(len(leading(line.text)) + next(coming), 0)
            lines.append(Line(COMES, " " * depth + line.text.lstrip()))
    return hunk._replace(lines=tuple(lines))
