"""Undamaged edits that delete their first or last lines, as strong models write them: context, and then a deletion.

The edit shows lines that occur in the file exactly once, and gives fewer of them back. The remaining lines are in the
file before the edit too, so the edit must not be taken for one that was applied before.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import NamedTuple

from damage import block, count_occurrences
from kinds import Fix, Kind, Made

CONTEXT, GONE, TRIES = 4, 6, 40


class Deletion(NamedTuple):
    """A passage of a file, and the range of its lines that stay: `low` to `high` (exclusive)."""

    start: int
    lines: list[str]
    low: int
    high: int


def pick_deletion(fix: Fix, seeded: random.Random, *, at_start: bool, at_end: bool) -> Deletion | None:
    """Pick a unique passage whose ends the program can lose; None if the random tries find none."""
    lines = fix.old.removesuffix("\n").split("\n")
    for _ in range(TRIES):
        before, kept_count, after = (
            seeded.randint(1, GONE) if at_start else 0,
            seeded.randint(1, CONTEXT),
            seeded.randint(1, GONE) if at_end else 0,
        )
        length = before + kept_count + after
        if len(lines) < length + 2:
            continue
        start = seeded.randrange(len(lines) - length)
        passage = lines[start : start + length]
        candidate = Deletion(start, passage, before, before + kept_count)
        kept_lines = passage[candidate.low : candidate.high]
        is_clear = (
            count_occurrences(passage, fix.old) == 1
            and any(line.strip() for line in kept_lines)
            and _has_no_markers(passage)
        )
        if is_clear and kept_lines != passage and _is_program(_delete_lines(fix, candidate)):
            return candidate
    return None


def _has_no_markers(passage: list[str]) -> bool:
    """Return whether no line could be read as part of the answer's syntax, or as a placeholder for other lines."""
    return not any(line.lstrip().startswith(("<<<<", "====", ">>>>", "...", "#", "@@", "***")) for line in passage)


def _delete_lines(fix: Fix, made: Deletion) -> str:
    lines = fix.old.split("\n")
    kept_lines = made.lines[made.low : made.high]
    return "\n".join([*lines[: made.start], *kept_lines, *lines[made.start + len(made.lines) :]])


def _is_program(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def as_block(path: str, made: Deletion) -> str:
    return block(path, made.lines, made.lines[made.low : made.high])


def as_envelope(path: str, made: Deletion) -> str:
    marks = (" " if made.low <= index < made.high else "-" for index in range(len(made.lines)))
    body = (mark + line for mark, line in zip(marks, made.lines, strict=True))
    return "\n".join(("*** Begin Patch", f"*** Update File: {path}", "@@", *body, "*** End Patch", ""))


def _create_kind(name: str, write: Callable[[str, Deletion], str], *, at_start: bool, at_end: bool) -> Kind:
    def make(fix: Fix, seeded: random.Random) -> Made | None:
        if not fix.old.endswith("\n") or not _is_program(fix.old):
            return None
        picked = pick_deletion(fix, seeded, at_start=at_start, at_end=at_end)
        return None if picked is None else Made(write(fix.path, picked), fix.old, None, _delete_lines(fix, picked))

    return Kind(name, "reach", make)


KINDS = (
    _create_kind("block_deletes_first", as_block, at_start=True, at_end=False),
    _create_kind("block_deletes_last", as_block, at_start=False, at_end=True),
    _create_kind("block_deletes_ends", as_block, at_start=True, at_end=True),
    _create_kind("envelope_deletes_first", as_envelope, at_start=True, at_end=False),
    _create_kind("envelope_deletes_last", as_envelope, at_start=False, at_end=True),
)
