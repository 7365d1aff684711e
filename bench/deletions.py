"""Undamaged edits that delete their first or last lines, as strong models write them: context, and then a deletion.

The edit shows lines that occur in the file exactly once, and gives fewer of them back. The remaining lines are in the
file before the edit too, so the edit must not be taken for one that was applied before.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import NamedTuple

from damage import block, times
from kinds import Fix, Kind, Made

CONTEXT, GONE, TRIES = 4, 6, 40


class Deletion(NamedTuple):
    """A passage of a file, and the range of its lines that stay: `low` to `high` (exclusive)."""

    start: int
    lines: list[str]
    low: int
    high: int


def deletion(fix: Fix, seeded: random.Random, *, first: bool, last: bool) -> Deletion | None:
    """Pick a unique passage whose ends the program can lose; None if the random tries find none."""
    lines = fix.old.removesuffix("\n").split("\n")
    for _ in range(TRIES):
        before, kept, after = (
            seeded.randint(1, GONE) if first else 0,
            seeded.randint(1, CONTEXT),
            seeded.randint(1, GONE) if last else 0,
        )
        length = before + kept + after
        if len(lines) < length + 2:
            continue
        start = seeded.randrange(len(lines) - length)
        passage = lines[start : start + length]
        made = Deletion(start, passage, before, before + kept)
        shown = passage[made.low : made.high]
        is_clear = times(passage, fix.old) == 1 and any(line.strip() for line in shown) and _marks_nothing(passage)
        if is_clear and shown != passage and _is_program(_without(fix, made)):
            return made
    return None


def _marks_nothing(passage: list[str]) -> bool:
    """Return whether no line could be read as part of the answer's syntax, or as a placeholder for other lines."""
    return not any(line.lstrip().startswith(("<<<<", "====", ">>>>", "...", "#", "@@", "***")) for line in passage)


def _without(fix: Fix, made: Deletion) -> str:
    lines = fix.old.split("\n")
    kept = made.lines[made.low : made.high]
    return "\n".join([*lines[: made.start], *kept, *lines[made.start + len(made.lines) :]])


def _is_program(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def as_block(path: str, made: Deletion) -> str:
    return block(path, made.lines, made.lines[made.low : made.high])


def as_envelope(path: str, made: Deletion) -> str:
    marks = (" " if made.low <= at < made.high else "-" for at in range(len(made.lines)))
    body = (mark + line for mark, line in zip(marks, made.lines, strict=True))
    return "\n".join(("*** Begin Patch", f"*** Update File: {path}", "@@", *body, "*** End Patch", ""))


def _kind(name: str, write: Callable[[str, Deletion], str], *, first: bool, last: bool) -> Kind:
    def make(fix: Fix, seeded: random.Random) -> Made | None:
        if not fix.old.endswith("\n") or not _is_program(fix.old):
            return None
        made = deletion(fix, seeded, first=first, last=last)
        return None if made is None else Made(write(fix.path, made), fix.old, None, _without(fix, made))

    return Kind(name, "reach", make)


KINDS = (
    _kind("block_deletes_first", as_block, first=True, last=False),
    _kind("block_deletes_last", as_block, first=False, last=True),
    _kind("block_deletes_ends", as_block, first=True, last=True),
    _kind("envelope_deletes_first", as_envelope, first=True, last=False),
    _kind("envelope_deletes_last", as_envelope, first=False, last=True),
)
