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
        counts = Counter(end for end in self.ends if end)
        return counts.most_common(1)[0][0] if counts else "\n"


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
    usual_end = text.end
    last_end = text.ends[-1] if text.ends else usual_end
    if ends and not ends[-1]:
        ends[-1] = usual_end
    for span in sorted(spans, reverse=True):
        lines[span.start : span.stop] = span.lines
        old_ends = ends[span.start : span.stop]
        ends[span.start : span.stop] = [old_ends[n] if n < len(old_ends) else usual_end for n in range(len(span.lines))]
    if ends:
        ends[-1] = last_end
    return TextLines(tuple(lines), tuple(ends), text.mark)


STAYS, GOES, COMES = " ", "-", "+"
END_OF_FILE_MARK = "*** End of File"

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
    header_counts: tuple[int, int] | None = None
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
        return self.header_counts == (len(self.old), len(self.new))


def is_elision(text: str) -> bool:
    """Return whether a line stands for omitted lines."""
    has_ellipsis = "..." in text or "…" in text or _IN_BRACKETS.match(text)
    return bool(_DOTS.match(text) or (_LEFT_OUT.match(text) and has_ellipsis))


def is_possible_elision(text: str) -> bool:
    """Return whether a line is a comment that may stand for omitted lines; only the lines that it replaces can tell."""
    return bool(_LEFT_OUT.match(text))


def create_hunk(search: Sequence[str], text: Sequence[str]) -> DiffHunk:
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


def parse_hunks(body: Sequence[str]) -> tuple[DiffHunk, ...]:
    """Parse the hunks after a diff's header, and drop prose between and after them."""
    hunks: list[DiffHunk] = []
    index = 0
    while index < len(body):
        headed = body[index].startswith("@@")
        if not headed and (hunks or not body[index].strip()):
            index += 1
            continue
        hunk, index = _read_hunk(body, index + headed, _parse_header(body[index]) if headed else DiffHunk(()))
        hunks.append(hunk)
    return tuple(hunks)


def _parse_header(line: str) -> DiffHunk:
    match = _HEADER.match(line)
    if match is None or match[1] is None:
        heading = line.strip("@").strip()
        return DiffHunk((), heading="" if is_elision(heading) or _NUMBERS.match(heading) else heading)
    counts = (int(match[2] or 1), int(match[4] or 1))
    return DiffHunk((), start=int(match[1]), header_counts=counts, heading=match["rest"].lstrip("@ ").rstrip())


def _read_hunk(body: Sequence[str], index: int, head: DiffHunk) -> tuple[DiffHunk, int]:
    """Parse the hunk whose lines begin at `index`; return it and the index where the next one may begin."""
    lines: list[HunkLine] = []
    ends_here = False
    while index < len(body) and not body[index].startswith("@@"):
        line = body[index]
        if line.strip() == END_OF_FILE_MARK:
            ends_here = True
        elif line[:1] in (GOES, COMES):
            lines.append(HunkLine(line[0], line[1:]))
        elif line[:1] == STAYS:
            lines.append(HunkLine(STAYS, line[1:], line))
        elif not line.startswith("\\"):
            if _is_complete(lines, head) and not _has_changes_after(body, index):
                break
            lines.append(HunkLine(STAYS, line, line))
        index += 1
    return head._replace(lines=_without_prose(lines, head), ends_here=ends_here), index


def _is_complete(lines: Sequence[HunkLine], head: DiffHunk) -> bool:
    return head._replace(lines=tuple(lines)).counted_right


def _has_changes_after(body: Sequence[str], index: int) -> bool:
    for line in body[index:]:
        if line.startswith("@@"):
            return False
        if line[:1] in (GOES, COMES):
            return True
    return False


def _without_prose(lines: list[HunkLine], head: DiffHunk) -> tuple[HunkLine, ...]:
    """Drop prose after the hunk: everything from an empty line on, if no marked line follows."""
    last_change = max((index for index, line in enumerate(lines) if line.mark != STAYS), default=-1)
    for index in range(last_change + 1, len(lines)):
        following = lines[index:]
        if (
            not lines[index].raw
            and all(line.raw == line.text for line in following)
            and any(line.raw for line in following)
        ):
            lines = lines[:index]
            break
    while lines and lines[-1] == HunkLine(STAYS, "", "") and not _needs_empty_line(lines, head):
        lines.pop()
    return tuple(lines)


def _needs_empty_line(lines: Sequence[HunkLine], head: DiffHunk) -> bool:
    """Return whether the counts require an empty line at the end."""
    return head.header_counts is not None and sum(line.mark != COMES for line in lines) <= head.header_counts[0]
