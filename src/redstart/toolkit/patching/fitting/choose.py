"""Which of several places a hunk means: only what the diff itself says can tell, and it must leave one."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Rung
from redstart.toolkit.patching.fitting.fit import Option, Options
from redstart.toolkit.patching.fitting.places import Page
from redstart.toolkit.patching.hunks import Hunk


def chosen(page: Page, hunks: Sequence[Hunk], found: Sequence[Options]) -> list[Option | None]:
    """One place for each hunk; None where several are left. The hunks of a diff stand in the order of the file."""
    picked: list[Option | None] = [one.places[0] if len(one.places) == 1 else None for one in found]
    offset = _offset(hunks, picked)
    for number, (hunk, some) in enumerate(zip(hunks, found, strict=True)):
        if picked[number] is None:
            picked[number] = _told_by_numbers(hunk, some, offset)
    for number, (hunk, some) in enumerate(zip(hunks, found, strict=True)):
        if picked[number] is None:
            between = _between(some.places, picked, number)
            picked[number] = between[0] if len(between) == 1 else _under_heading(page, hunk, between)
    return picked


def _offset(hunks: Sequence[Hunk], picked: Sequence[Option | None]) -> int | None:
    """By how much every hunk whose place is sure is off; None where they differ or there is none."""
    pairs = zip(hunks, picked, strict=True)
    offsets = {option.start + 1 - hunk.start for hunk, option in pairs if option and hunk.start is not None}
    return offsets.pop() if len(offsets) == 1 else None


def _told_by_numbers(hunk: Hunk, some: Options, offset: int | None) -> Option | None:
    if hunk.start is None or some.rung not in (Rung.exact, Rung.whitespace):
        return None
    wanted = hunk.start - 1 + (offset or 0)
    return next((option for option in some.places if option.start == wanted), None)


def _between(places: Sequence[Option], picked: Sequence[Option | None], number: int) -> list[Option]:
    low = max((option.start for option in picked[:number] if option), default=-1)
    high = min((option.start for option in picked[number + 1 :] if option), default=None)
    return [option for option in places if option.start > low and (high is None or option.start < high)]


def _under_heading(page: Page, hunk: Hunk, places: Sequence[Option]) -> Option | None:
    """The one place whose nearest line above with the heading's indentation or less is the heading."""
    heading = hunk.heading.strip()
    if not heading:
        return None
    under = [option for option in places if _heads(page, heading, option.start)]
    return under[0] if len(under) == 1 else None


def _heads(page: Page, heading: str, start: int) -> bool:
    kind = heading.split(" ", 1)[0]
    for line in reversed(page.lines[:start]):
        said = line.strip()
        if said.startswith(heading):
            return True
        if said.split(" ", 1)[0] == kind:
            return False
    return False
