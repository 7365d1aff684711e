"""The real lines that come closest to what an edit looked for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from redstart.core.noun import clip
from redstart.toolkit.patching.fitting.places import Page
from redstart.toolkit.patching.hunks import Line

SHOWN = 600
PLACES = 3


def nearest(page: Page, old: Sequence[Line]) -> str:
    """A passage with its line numbers; empty where nothing is close."""
    wanted = [line.text.strip() for line in old if line.text.strip()]
    if not wanted or not page.lines:
        return ""
    start = _start(page, wanted)
    if start is None:
        return ""
    return clip(f"the nearest lines are:\n{passage(page, start, len(old))}", SHOWN)


def each_place(page: Page, starts: Sequence[int], length: int) -> str:
    """The passages at several places, with what stands before and behind each: that tells them apart."""
    shown = (passage(page, start, length) for start in starts[:PLACES])
    return clip("the places are:\n" + "\n--\n".join(shown), SHOWN)


def passage(page: Page, start: int, length: int) -> str:
    """So many lines with their numbers, and the line before and behind them."""
    low, high = max(start - 1, 0), min(start + length + 1, len(page.lines))
    return "\n".join(f"{number + 1}: {page.lines[number]}" for number in range(low, high))


def _start(page: Page, wanted: Sequence[str]) -> int | None:
    """Where most of the lines agree; else where one is most alike."""
    agree: dict[int, int] = {}
    for number, text in enumerate(wanted):
        for place in page.where(text)[:50]:
            agree[place - number] = agree.get(place - number, 0) + 1
    if agree:
        return max(max(agree, key=lambda place: (agree[place], -place)), 0)
    stripped = [line.strip() for line in page.lines]
    for text in sorted(wanted, key=len, reverse=True)[:3]:
        if close := difflib.get_close_matches(text, stripped, n=1, cutoff=0.5):
            return max(stripped.index(close[0]) - wanted.index(text), 0)
    return None
