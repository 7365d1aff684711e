"""The one shape that every form of edit is read into: lines that stay, go or come, in order."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

STAYS, GOES, COMES = " ", "-", "+"
END_OF_FILE = "*** End of File"

_HEADER = re.compile(r"^@@+(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))?)?(?P<rest>.*)$")
_NUMBERS = re.compile(r"^[-+\d,. ]*$")
_DOTS = re.compile(r"^\s*(?:(?:#|//|--|/\*|<!--)\s*)?(?:\.{3,}|…)\s*(?:\*/|-->)?\s*$")
_LEFT_OUT = re.compile(
    r"^\s*(?:#|//|--|/\*|<!--)\s*(?:\.{3,}|…|\[|\()?.{0,30}\b(?:existing|unchanged|rest|remain\w*|same|previous|omitted"
    r"|as before|not shown|other (?:code|methods|functions))\b.{0,60}$",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"^\W*[\[(][^\])]*\b(?:unchanged|omitted|not shown)\b[^\])]*[\])]\W*$", re.IGNORECASE)


class Line(NamedTuple):
    mark: str
    text: str
    raw: str = ""
    """A line that stays, with the marker that may have been part of it or may have been lost."""


class Hunk(NamedTuple):
    lines: tuple[Line, ...]
    start: int | None = None
    """The line of the file where it says that it begins, from 1."""
    counts: tuple[int, int] | None = None
    """How many old and new lines it says that it has."""
    heading: str = ""
    """A line that stands somewhere above it."""
    ends_here: bool = False
    """It says that its last line is the file's last."""

    @property
    def old(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.mark != COMES)

    @property
    def new(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.mark != GOES)

    @property
    def changes(self) -> bool:
        return any(line.mark != STAYS for line in self.lines)

    @property
    def counted_right(self) -> bool:
        return self.counts == (len(self.old), len(self.new))


def elision(text: str) -> bool:
    """Whether a line stands for others that were left out."""
    marked = "..." in text or "…" in text or _IN_BRACKETS.match(text)
    return bool(_DOTS.match(text) or (_LEFT_OUT.match(text) and marked))


def may_be_elision(text: str) -> bool:
    """Whether a line is a comment that speaks of others as of known ones: what it stands in the place of tells."""
    return bool(_LEFT_OUT.match(text))


def of_block(search: Sequence[str], text: Sequence[str]) -> Hunk:
    """Lines that both sides have stay; so the file's own form of them is what is kept."""
    lines: list[Line] = []
    matcher = difflib.SequenceMatcher(None, search, text, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            lines += [Line(STAYS, line) for line in search[a:b]]
        else:
            lines += [Line(GOES, line) for line in search[a:b]]
            lines += [Line(COMES, line) for line in text[c:d]]
    return Hunk(tuple(lines))


def of_diff(body: Sequence[str]) -> tuple[Hunk, ...]:
    """The hunks in the lines that follow a diff's header; prose between and behind them is dropped."""
    hunks: list[Hunk] = []
    at = 0
    while at < len(body):
        headed = body[at].startswith("@@")
        if not headed and (hunks or not body[at].strip()):
            at += 1
            continue
        hunk, at = _one(body, at + headed, _headed(body[at]) if headed else Hunk(()))
        hunks.append(hunk)
    return tuple(hunks)


def _headed(line: str) -> Hunk:
    found = _HEADER.match(line)
    if found is None or found[1] is None:
        heading = line.strip("@").strip()
        return Hunk((), heading="" if elision(heading) or _NUMBERS.match(heading) else heading)
    counts = (int(found[2] or 1), int(found[4] or 1))
    return Hunk((), start=int(found[1]), counts=counts, heading=found["rest"].lstrip("@ ").rstrip())


def _one(body: Sequence[str], at: int, head: Hunk) -> tuple[Hunk, int]:
    """The hunk whose lines begin at `at`, and where the next one may begin."""
    lines: list[Line] = []
    ends_here = False
    while at < len(body) and not body[at].startswith("@@"):
        line = body[at]
        if line.strip() == END_OF_FILE:
            ends_here = True
        elif line[:1] in (GOES, COMES):
            lines.append(Line(line[0], line[1:]))
        elif line[:1] == STAYS:
            lines.append(Line(STAYS, line[1:], line))
        elif not line.startswith("\\"):
            if _full(lines, head) and not _changes_follow(body, at):
                break
            lines.append(Line(STAYS, line, line))
        at += 1
    return head._replace(lines=_without_prose(lines, head), ends_here=ends_here), at


def _full(lines: Sequence[Line], head: Hunk) -> bool:
    return head._replace(lines=tuple(lines)).counted_right


def _changes_follow(body: Sequence[str], at: int) -> bool:
    for line in body[at:]:
        if line.startswith("@@"):
            return False
        if line[:1] in (GOES, COMES):
            return True
    return False


def _without_prose(lines: list[Line], head: Hunk) -> tuple[Line, ...]:
    """Without what was said behind the hunk: from an empty line on, nothing that has a marker."""
    last = max((at for at, line in enumerate(lines) if line.mark != STAYS), default=-1)
    for at in range(last + 1, len(lines)):
        rest = lines[at:]
        if not lines[at].raw and all(line.raw == line.text for line in rest) and any(line.raw for line in rest):
            lines = lines[:at]
            break
    while lines and lines[-1] == Line(STAYS, "", "") and not _wanted(lines, head):
        lines.pop()
    return tuple(lines)


def _wanted(lines: Sequence[Line], head: Hunk) -> bool:
    """Whether the counts ask for an empty line at the end."""
    return head.counts is not None and sum(line.mark != COMES for line in lines) <= head.counts[0]
