"""Finds the old lines of a hunk in a file, also if one transformation explains all differences of the hunk."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from redstart.toolkit.patching.hunks import STAYS, DiffHunk, HunkLine

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
_CURLY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_GUTTER = re.compile(r"^\s*\d+(?: ?[|:│] ?|[.)] |\t| )")
_TIGHT_GUTTER = re.compile(r"^\s*\d+(?: ?[|:│]|[.)]|\t|(?= ))")


Bend = Callable[[str], str | None]
"""Restores a line; None if the transformation does not apply to it."""


def leading(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def shift(old: str, real: str) -> Bend | None:
    """Return the transformation of the indentation of `old` to that of `real`: text added or removed at the left."""
    before, after = leading(old), leading(real)
    if old[len(before) :].rstrip() != real[len(after) :].rstrip() or before == after:
        return None
    if after.endswith(before):
        more = after[: len(after) - len(before)]
        return partial(_push, more=more)
    if before.endswith(after):
        less = before[: len(before) - len(after)]
        return partial(_cut, less=less)
    return None


def retabbed() -> Iterator[Bend]:
    """Yield conversions of spaces to tabs and the reverse, at the usual widths."""
    for width in (4, 8, 2):
        yield partial(_tabs, width=width)
        yield partial(_spaces, width=width)


def restyled(lines: Sequence[str], hunk: DiffHunk) -> DiffHunk:
    """Indent added lines with tabs if the file uses only tabs and no old line shows the indentation."""
    margins = {leading(line)[:1] for line in lines if line.strip()}
    if margins - {""} != {"\t"} or any(leading(line.text) for line in hunk.old):
        return hunk
    depths = [len(leading(line.text)) for line in hunk.lines if leading(line.text).strip("\t")]
    if not depths or min(depths) not in (2, 4, 8):
        return hunk
    return bent(hunk, partial(_tabs, width=min(depths))) or hunk


def unwrapped(lines: Sequence[str]) -> Iterator[Bend]:
    """Yield reversals of what a display or a transport did to every line: line numbers, escaped characters."""
    said = [line for line in lines if line.strip()]
    if said and all(_GUTTER.match(line) for line in said):
        yield partial(_GUTTER.sub, "", count=1)
        yield partial(_TIGHT_GUTTER.sub, "", count=1)
    if any(_ENTITY.search(line) for line in said):
        yield html.unescape
    if any(line != line.translate(_CURLY) for line in said):
        yield _straight


def foreign_signs(lines: Sequence[str], hunk: DiffHunk, new: Sequence[str]) -> str:
    """Return a name for escaped characters or curly quotes in the new lines if the file has none and no old line shows
    that the answer writes such characters plainly; empty otherwise. A transport may have added them.
    """
    coming = "\n".join(new)
    old = "\n".join(line.text for line in hunk.old)
    file = "\n".join(lines)
    if _ENTITY.search(coming) and not _ENTITY.search(file) and not any(sign in old for sign in "<>&"):
        return "escaped characters"
    curly = coming != _straight(coming) and file == _straight(file)
    return "curly quotes" if curly and not any(sign in old for sign in "'\"") else ""


def bent(hunk: DiffHunk, bend: Bend) -> DiffHunk | None:
    lines: list[HunkLine] = []
    for line in hunk.lines:
        text = bend(line.text)
        if text is None:
            return None
        lines.append(HunkLine(line.mark, text, text if line.mark == STAYS else ""))
    return hunk._replace(lines=tuple(lines))


def _straight(text: str) -> str:
    return text.translate(_CURLY)


def _push(text: str, more: str) -> str:
    return more + text if text.strip() else text


def _cut(text: str, less: str) -> str | None:
    if not text.strip():
        return ""
    return text[len(less) :] if text.startswith(less) else None


def _tabs(text: str, width: int) -> str:
    columns = len(leading(text).expandtabs(width))
    return "\t" * (columns // width) + " " * (columns % width) + text.lstrip(" \t")


def _spaces(text: str, width: int) -> str:
    return leading(text).expandtabs(width) + text.lstrip(" \t")


Same = Callable[[HunkLine, str], bool]


class IndexedLines:
    """A file's lines with an index, built once for all its hunks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        self._at: dict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self.lines):
            self._at[line.strip()].append(number)

    def where(self, text: str) -> Sequence[int]:
        """Return the numbers of lines equal to `text`, ignoring surrounding whitespace."""
        return self._at.get(text.strip(), ())

    def starts(self, old: Sequence[HunkLine]) -> list[int]:
        """List every start at which the rarest of the lines matches and the others have room."""
        if not old:
            return []
        rarest = min(range(len(old)), key=lambda at: (not old[at].text.strip(), len(self.where(old[at].text))))
        last = len(self.lines) - len(old)
        return [at - rarest for at in self.where(old[rarest].text) if 0 <= at - rarest <= last]

    def matches(self, old: Sequence[HunkLine], same: Same) -> list[int]:
        return [
            start
            for start in self.starts(old)
            if all(same(line, self.lines[start + at]) for at, line in enumerate(old))
        ]


def exactly(line: HunkLine, real: str) -> bool:
    return line.text == real


def loosely(line: HunkLine, real: str) -> bool:
    """Compare without trailing whitespace; a context line may have lost its marker, or never had one."""
    if line.text.rstrip() == real.rstrip():
        return True
    return line.mark == STAYS and line.raw.rstrip() == real.rstrip()


def bends(page: IndexedLines, hunk: DiffHunk) -> list[tuple[DiffHunk, int]]:
    """Transform the hunk as a whole so that it fits, and return each variant with its place."""
    found: list[tuple[DiffHunk, int]] = []
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


def _fits(page: IndexedLines, hunk: DiffHunk, bend: Bend, start: int) -> DiffHunk | None:
    changed = bent(hunk, bend)
    if changed is None:
        return None
    return changed if all(loosely(line, page.lines[start + at]) for at, line in enumerate(changed.old)) else None
