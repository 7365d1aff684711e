"""The common representation of all edit formats, and files as lines with their line endings."""

from __future__ import annotations

import codecs
import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class TextLines(NamedTuple):
    """The lines of a file without line endings; `ends` has one ending per line, the last one empty if absent."""

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    mark: bool = False
    """Whether the file begins with a byte order mark."""

    @property
    def end(self) -> str:
        """The most common line ending of the file."""
        counted = Counter(end for end in self.ends if end)
        return counted.most_common(1)[0][0] if counted else "\n"


class LineReplacement(NamedTuple):
    """A replacement of lines `start` to `stop` (exclusive) by `lines`."""

    start: int
    stop: int
    lines: tuple[str, ...]


def read(data: bytes) -> TextLines:
    """Read any bytes; bytes that are not UTF-8 survive unchanged."""
    mark = data.startswith(codecs.BOM_UTF8)
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    parts = text.split("\n")
    lines = [part.removesuffix("\r") for part in parts]
    ends = ["\r\n" if part.endswith("\r") else "\n" for part in parts]
    if parts[-1]:
        lines[-1], ends[-1] = parts[-1], ""
    else:
        lines.pop()
        ends.pop()
    return TextLines(tuple(lines), tuple(ends), mark)


def write(text: TextLines) -> bytes:
    body = "".join(line + end for line, end in zip(text.lines, text.ends, strict=True))
    return (codecs.BOM_UTF8 if text.mark else b"") + body.encode("utf-8", "surrogateescape")


def splice(text: TextLines, spans: Sequence[LineReplacement]) -> TextLines:
    """Replace spans of a text. New lines get the file's usual ending, and the last line keeps the old last ending."""
    lines, ends = list(text.lines), list(text.ends)
    usual = text.end
    last = text.ends[-1] if text.ends else usual
    if ends and not ends[-1]:
        ends[-1] = usual
    for span in sorted(spans, reverse=True):
        lines[span.start : span.stop] = span.lines
        kept = ends[span.start : span.stop]
        ends[span.start : span.stop] = [kept[n] if n < len(kept) else usual for n in range(len(span.lines))]
    if ends:
        ends[-1] = last
    return TextLines(tuple(lines), tuple(ends), text.mark)


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


class HunkLine(NamedTuple):
    mark: str
    text: str
    raw: str = ""
    """For a line that stays, the raw line: its marker may be part of the text, or may have been lost."""


class DiffHunk(NamedTuple):
    lines: tuple[HunkLine, ...]
    start: int | None = None
    """The line of the file, from 1, where the header says that the hunk begins."""
    counts: tuple[int, int] | None = None
    """The numbers of old and new lines according to the header."""
    heading: str = ""
    """A line that is somewhere above the hunk."""
    ends_here: bool = False
    """Whether the hunk says that its last line is the file's last."""

    @property
    def old(self) -> tuple[HunkLine, ...]:
        return tuple(line for line in self.lines if line.mark != COMES)

    @property
    def new(self) -> tuple[HunkLine, ...]:
        return tuple(line for line in self.lines if line.mark != GOES)

    @property
    def changes(self) -> bool:
        return any(line.mark != STAYS for line in self.lines)

    @property
    def counted_right(self) -> bool:
        return self.counts == (len(self.old), len(self.new))


def elision(text: str) -> bool:
    """Return whether a line stands for omitted lines."""
    marked = "..." in text or "…" in text or _IN_BRACKETS.match(text)
    return bool(_DOTS.match(text) or (_LEFT_OUT.match(text) and marked))


def may_be_elision(text: str) -> bool:
    """Return whether a line is a comment that may stand for omitted lines; only the lines that it replaces can tell."""
    return bool(_LEFT_OUT.match(text))


def of_block(search: Sequence[str], text: Sequence[str]) -> DiffHunk:
    """Build a hunk from both sides of a block. Common lines stay, so the file's own form of them is kept."""
    lines: list[HunkLine] = []
    matcher = difflib.SequenceMatcher(None, search, text, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            lines += [HunkLine(STAYS, line) for line in search[a:b]]
        else:
            lines += [HunkLine(GOES, line) for line in search[a:b]]
            lines += [HunkLine(COMES, line) for line in text[c:d]]
    return DiffHunk(tuple(lines))


def of_diff(body: Sequence[str]) -> tuple[DiffHunk, ...]:
    """Parse the hunks after a diff's header, and drop prose between and after them."""
    hunks: list[DiffHunk] = []
    at = 0
    while at < len(body):
        headed = body[at].startswith("@@")
        if not headed and (hunks or not body[at].strip()):
            at += 1
            continue
        hunk, at = _one(body, at + headed, _headed(body[at]) if headed else DiffHunk(()))
        hunks.append(hunk)
    return tuple(hunks)


def _headed(line: str) -> DiffHunk:
    found = _HEADER.match(line)
    if found is None or found[1] is None:
        heading = line.strip("@").strip()
        return DiffHunk((), heading="" if elision(heading) or _NUMBERS.match(heading) else heading)
    counts = (int(found[2] or 1), int(found[4] or 1))
    return DiffHunk((), start=int(found[1]), counts=counts, heading=found["rest"].lstrip("@ ").rstrip())


def _one(body: Sequence[str], at: int, head: DiffHunk) -> tuple[DiffHunk, int]:
    """Parse the hunk whose lines begin at `at`; return it and the index where the next one may begin."""
    lines: list[HunkLine] = []
    ends_here = False
    while at < len(body) and not body[at].startswith("@@"):
        line = body[at]
        if line.strip() == END_OF_FILE:
            ends_here = True
        elif line[:1] in (GOES, COMES):
            lines.append(HunkLine(line[0], line[1:]))
        elif line[:1] == STAYS:
            lines.append(HunkLine(STAYS, line[1:], line))
        elif not line.startswith("\\"):
            if _full(lines, head) and not _changes_follow(body, at):
                break
            lines.append(HunkLine(STAYS, line, line))
        at += 1
    return head._replace(lines=_without_prose(lines, head), ends_here=ends_here), at


def _full(lines: Sequence[HunkLine], head: DiffHunk) -> bool:
    return head._replace(lines=tuple(lines)).counted_right


def _changes_follow(body: Sequence[str], at: int) -> bool:
    for line in body[at:]:
        if line.startswith("@@"):
            return False
        if line[:1] in (GOES, COMES):
            return True
    return False


def _without_prose(lines: list[HunkLine], head: DiffHunk) -> tuple[HunkLine, ...]:
    """Drop prose after the hunk: everything from an empty line on, if no marked line follows."""
    last = max((at for at, line in enumerate(lines) if line.mark != STAYS), default=-1)
    for at in range(last + 1, len(lines)):
        rest = lines[at:]
        if not lines[at].raw and all(line.raw == line.text for line in rest) and any(line.raw for line in rest):
            lines = lines[:at]
            break
    while lines and lines[-1] == HunkLine(STAYS, "", "") and not _wanted(lines, head):
        lines.pop()
    return tuple(lines)


def _wanted(lines: Sequence[HunkLine], head: DiffHunk) -> bool:
    """Return whether the counts require an empty line at the end."""
    return head.counts is not None and sum(line.mark != COMES for line in lines) <= head.counts[0]
