"""A change of several files as hunks that can be left out one by one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from redstart.toolkit.languages.abilities import ChangeReader
from redstart.toolkit.languages.registry import find_file_language

Files = Mapping[str, bytes | None]


class ChangeHunk(NamedTuple):
    """One hunk of a change: the lines `start` to `end` of the old file become `lines`.

    A new or deleted file is one hunk with `whole` set; `lines` is None if the file is deleted.
    """

    path: str
    start: int
    end: int
    lines: tuple[bytes, ...] | None
    is_whole_file: bool = False


def split_hunks(before: Files, after: Files) -> tuple[ChangeHunk, ...]:
    """Split a change into hunks, ordered by path and line. None stands for a file that does not exist."""
    hunks: list[ChangeHunk] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if old is None or new is None:
            lines = None if new is None else tuple(new.splitlines(keepends=True))
            hunks.append(ChangeHunk(path, 0, 0, lines, is_whole_file=True))
            continue
        old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
        for tag, start, end, first, last in difflib.SequenceMatcher(
            None, old_lines, new_lines, autojunk=False
        ).get_opcodes():
            if tag != "equal":
                pieces = _split_pieces(new_lines[first:last])
                hunks.append(ChangeHunk(path, start, end, pieces[0]))
                hunks += [ChangeHunk(path, end, end, piece) for piece in pieces[1:]]
    return tuple(hunks)


def _split_pieces(lines: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """Split new lines before a blank line followed by unindented text: a function added beside a changed one."""
    cuts = [0]
    for index in range(1, len(lines)):
        gap = index
        while gap < len(lines) and not lines[gap].strip():
            gap += 1
        is_start = gap > index and lines[index - 1].strip() and gap < len(lines) and not lines[gap][:1].isspace()
        cuts += [index] if is_start else []
    return [tuple(lines[start:end]) for start, end in zip(cuts, [*cuts[1:], len(lines)], strict=True)]


def compose(before: Files, hunks: Sequence[ChangeHunk], selected: Collection[int]) -> dict[str, bytes | None]:
    """Build every file that the change touches, with only the hunks numbered in `selected` applied."""
    files: dict[str, bytes | None] = {hunk.path: before.get(hunk.path) for hunk in hunks}
    for path in files:
        file_hunks = [hunks[number] for number in sorted(selected) if hunks[number].path == path]
        if file_hunks and file_hunks[0].is_whole_file:
            files[path] = None if file_hunks[0].lines is None else b"".join(file_hunks[0].lines)
        elif file_hunks:
            lines = (before[path] or b"").splitlines(keepends=True)
            # From the end, so that the line numbers of earlier hunks stay valid.
            for hunk in reversed(file_hunks):
                lines[hunk.start : hunk.end] = hunk.lines or ()
            files[path] = b"".join(lines)
    return files


def has_valid_syntax(before: Files, files: Files) -> bool:
    """Return whether every source file that parsed before still parses."""
    for path, text in files.items():
        old, reader = before.get(path), get_change_reader(path)
        if text is None or text == old or reader is None or reader.can_parse(text):
            continue
        if old is None or reader.can_parse(old):
            return False
    return True


def has_same_meaning(before: Files, files: Files) -> bool:
    """Return whether the files mean the same as before: only comments, blank lines or layout differ."""
    for path, text in files.items():
        old, reader = before.get(path), get_change_reader(path)
        if old == text:
            continue
        if old is None or text is None or reader is None or not reader.has_same_meaning(old, text):
            return False
    return True


def get_change_reader(path: str) -> ChangeReader | None:
    """Return the reader that interprets changes of this file; None if there is none."""
    language = find_file_language(path)
    return language.change_reader if language else None
