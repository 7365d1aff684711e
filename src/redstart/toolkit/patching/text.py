"""A file as lines that remember how they ended, so that what is not edited stays byte for byte."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Text(NamedTuple):
    """`lines` without their ends; `ends` has one for each, the last one empty where the file does not end in one."""

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    mark: bool = False
    """Whether the file begins with a byte order mark."""

    @property
    def end(self) -> str:
        """The line end that the file uses most."""
        counted = Counter(end for end in self.ends if end)
        return counted.most_common(1)[0][0] if counted else "\n"


class Span(NamedTuple):
    """Lines `start` to `stop` (exclusive) are to become `lines`."""

    start: int
    stop: int
    lines: tuple[str, ...]


def read(data: bytes) -> Text:
    """Any bytes: what is not UTF-8 is carried along and comes out as it went in."""
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
    return Text(tuple(lines), tuple(ends), mark)


def write(text: Text) -> bytes:
    body = "".join(line + end for line, end in zip(text.lines, text.ends, strict=True))
    return (codecs.BOM_UTF8 if text.mark else b"") + body.encode("utf-8", "surrogateescape")


def splice(text: Text, spans: Sequence[Span]) -> Text:
    """The text with the spans replaced. New lines end as the file's lines do, and the last one as the last one did."""
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
    return Text(tuple(lines), tuple(ends), text.mark)
