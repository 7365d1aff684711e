"""The true fix of a task, as the instruments know it, and what of the code a model must see to find it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

_PASSAGE = re.compile(
    r'^<data from="(?P<path>[^"]+?)(?: lines (?P<start>\d+)-(?P<end>\d+))?">\n(?P<text>.*?)\n?</data>$',
    re.MULTILINE | re.DOTALL,
)
_TAG = re.compile(r"<(/?)(data)\b", re.IGNORECASE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NO_END = "\\ No newline at end of file\n"


class Span(NamedTuple):
    """Lines of a file, both counted from 1, inclusive."""

    start: int
    end: int


class TrueFix(NamedTuple):
    """One file before and after; empty where there is none."""

    path: str
    before: str
    after: str

    @property
    def needed(self) -> tuple[Span, ...]:
        """The lines that the fix changes or removes; where it only adds, those on either side. None of a new file."""
        return needed_lines(self.before, self.after)

    @property
    def diff(self) -> str:
        """As a unified diff of this one file."""
        # As diffs count lines: a form feed ends none.
        sides = _LINE.findall(self.before), _LINE.findall(self.after)
        old, new = (f"a/{self.path}" if sides[0] else "/dev/null", f"b/{self.path}" if sides[1] else "/dev/null")
        lines = difflib.unified_diff(*sides, fromfile=old, tofile=new)
        return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)


class Shown(NamedTuple):
    """A passage of a file in a prompt."""

    path: str
    span: Span
    lines: frozenset[str]


def needed_lines(before: str, after: str) -> tuple[Span, ...]:
    """See `TrueFix.needed`."""
    old, new = before.splitlines(), after.splitlines()
    spans: list[Span] = []
    for tag, start, end, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("replace", "delete"):
            spans.append(Span(start + 1, end))
        elif tag == "insert" and old:
            spans.append(Span(max(start, 1), min(start + 1, len(old))))
    return tuple(spans)


def shown_code(prompt: str) -> list[Shown]:
    """The passages of files in a prompt, in their order. What else stands there as data has a name of its own kind."""
    found: list[Shown] = []
    for one in _PASSAGE.finditer(prompt):
        lines = frozenset(line.rstrip() for line in one["text"].splitlines())
        span = Span(int(one["start"]), int(one["end"])) if one["start"] else Span(1, 10**9)
        found.append(Shown(one["path"], span, lines))
    return found


def is_recalled(fixes: Sequence[TrueFix], prompt: str) -> bool:
    """Whether a prompt holds every line that is needed, in passages of the files that they are in.

    A line counts by its place and by its text, so that one which was cut out of a passage does not.
    """
    shown = shown_code(prompt)
    return all(_is_shown(fix, span, shown) for fix in fixes for span in fix.needed)


def _is_shown(fix: TrueFix, span: Span, shown: Sequence[Shown]) -> bool:
    lines = fix.before.splitlines()
    passages = [one for one in shown if one.path == fix.path]

    def is_there(number: int) -> bool:
        # A prompt defuses what could close its own passages.
        text = _TAG.sub(r"<\1\2_", lines[number - 1]).rstrip()
        return any(one.span.start <= number <= one.span.end and (not text or text in one.lines) for one in passages)

    return all(is_there(number) for number in range(span.start, span.end + 1))
