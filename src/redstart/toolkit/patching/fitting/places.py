"""Where the old lines of a hunk stand in a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from redstart.toolkit.patching.fitting.variations import Bend, bent, retabbed, shift, unwrapped
from redstart.toolkit.patching.hunks import STAYS, Hunk, Line

Same = Callable[[Line, str], bool]


class Page:
    """A file's lines with an index of them, made once for all of its hunks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        self._at: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self.lines):
            self._at[line.strip()].append(number)

    def where(self, text: str) -> Sequence[int]:
        """The lines that are `text`, but for blanks around it."""
        return self._at.get(text.strip(), ())

    def starts(self, old: Sequence[Line]) -> list[int]:
        """Every place where the rarest of the lines stands so that the others can be around it."""
        if not old:
            return []
        rarest = min(range(len(old)), key=lambda at: (not old[at].text.strip(), len(self.where(old[at].text))))
        last = len(self.lines) - len(old)
        return [at - rarest for at in self.where(old[rarest].text) if 0 <= at - rarest <= last]

    def matches(self, old: Sequence[Line], same: Same) -> list[int]:
        return [
            start
            for start in self.starts(old)
            if all(same(line, self.lines[start + at]) for at, line in enumerate(old))
        ]


def exactly(line: Line, real: str) -> bool:
    return line.text == real


def loosely(line: Line, real: str) -> bool:
    """But for blanks at the end; a line that stays may have lost its marker, or never had one."""
    if line.text.rstrip() == real.rstrip():
        return True
    return line.mark == STAYS and line.raw.rstrip() == real.rstrip()


def bends(page: Page, hunk: Hunk) -> list[tuple[Hunk, int]]:
    """The hunk bent as a whole so that it fits, with each place where it then does."""
    found: list[tuple[Hunk, int]] = []
    old = hunk.old
    first = next((at for at, line in enumerate(old) if line.text.strip()), None)
    if first is None:
        return found
    for start in page.starts(old):
        bend = shift(old[first].text, page.lines[start + first])
        if bend is not None and (fitting := _fits(page, hunk, bend, start)):
            found.append((fitting, start))
    if found:
        return found
    for bend in (*retabbed(), *unwrapped([line.text for line in hunk.lines])):
        if changed := bent(hunk, bend):
            found = [(changed, start) for start in page.matches(changed.old, loosely)]
            if found:
                return found
    return []


def _fits(page: Page, hunk: Hunk, bend: Bend, start: int) -> Hunk | None:
    changed = bent(hunk, bend)
    if changed is None:
        return None
    return changed if all(loosely(line, page.lines[start + at]) for at, line in enumerate(changed.old)) else None
