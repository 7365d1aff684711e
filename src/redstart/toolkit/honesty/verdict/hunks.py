"""A change of several files as hunks that can be left out one by one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from redstart.toolkit.languages.abilities import ChangeReader
from redstart.toolkit.languages.registry import language_of_file

Files = Mapping[str, bytes | None]


class ChangeHunk(NamedTuple):
    """One hunk of a change: the lines `start` to `end` of the old file become `lines`.

    A new or deleted file is one hunk with `whole` set; `lines` is None if the file is deleted.
    """

    path: str
    start: int
    end: int
    lines: tuple[bytes, ...] | None
    whole: bool = False


def hunks_of(before: Files, after: Files) -> tuple[ChangeHunk, ...]:
    """Split a change into hunks, ordered by path and line. None stands for a file that does not exist."""
    found: list[ChangeHunk] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if old is None or new is None:
            lines = None if new is None else tuple(new.splitlines(keepends=True))
            found.append(ChangeHunk(path, 0, 0, lines, whole=True))
            continue
        was, now = old.splitlines(keepends=True), new.splitlines(keepends=True)
        for tag, start, end, first, last in difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
            if tag != "equal":
                pieces = _pieces(now[first:last])
                found.append(ChangeHunk(path, start, end, pieces[0]))
                found += [ChangeHunk(path, end, end, piece) for piece in pieces[1:]]
    return tuple(found)


def _pieces(lines: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Split new lines before a blank line followed by unindented text: a function added beside a changed one."""
    cuts = [0]
    for at in range(1, len(lines)):
        gap = at
        while gap < len(lines) and not lines[gap].strip():
            gap += 1
        begins = gap > at and lines[at - 1].strip() and gap < len(lines) and not lines[gap][:1].isspace()
        cuts += [at] if begins else []
    return [tuple(lines[start:end]) for start, end in zip(cuts, [*cuts[1:], len(lines)], strict=True)]


def compose(before: Files, hunks: Sequence[ChangeHunk], kept: Collection[int]) -> dict[str, bytes | None]:
    """Build every file that the change touches, with only the hunks numbered in `kept` applied."""
    files: dict[str, bytes | None] = {hunk.path: before.get(hunk.path) for hunk in hunks}
    for path in files:
        chosen = [hunks[number] for number in sorted(kept) if hunks[number].path == path]
        if chosen and chosen[0].whole:
            files[path] = None if chosen[0].lines is None else b"".join(chosen[0].lines)
        elif chosen:
            lines = (before[path] or b"").splitlines(keepends=True)
            # From the end, so that the line numbers of earlier hunks stay valid.
            for hunk in reversed(chosen):
                lines[hunk.start : hunk.end] = hunk.lines or ()
            files[path] = b"".join(lines)
    return files


def parses(before: Files, files: Files) -> bool:
    """Return whether every source file that parsed before still parses."""
    for path, text in files.items():
        old, reader = before.get(path), reader_of(path)
        if text is None or text == old or reader is None or reader.parses(text):
            continue
        if old is None or reader.parses(old):
            return False
    return True


def says_the_same(before: Files, files: Files) -> bool:
    """Return whether the files mean the same as before: only comments, blank lines or layout differ."""
    for path, text in files.items():
        old, reader = before.get(path), reader_of(path)
        if old == text:
            continue
        if old is None or text is None or reader is None or not reader.says_the_same(old, text):
            return False
    return True


def reader_of(path: str) -> ChangeReader | None:
    """Return the reader that interprets changes of this file; None if there is none."""
    language = language_of_file(path)
    return language.change_reader if language else None
