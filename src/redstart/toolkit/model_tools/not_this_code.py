"""Read the answer that names failing tests which the code is not to blame for."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from redstart.core.frozen import clip
from redstart.core.safe_text import to_one_line
from redstart.core.set_aside import LONGEST_REASON

LONGEST_ANSWER = 100_000
MOST_IGNORED = 5

_LABEL = re.compile(r"^[ \t>*#`-]*NOT THIS CODE[ \t*`]*:[ \t*`]*(?P<ids>.*)$", re.MULTILINE)
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*]|\d+\.)[ \t]+")
_SEPARATOR = re.compile(r"[\s,]+(?![^\[\n]*\])")
_LABELED = re.compile(r"^[ \t>*#`-]*(?:[A-Z]+ )*[A-Z]{3,}[ \t*`]*:")
_EDIT = re.compile(r"^(?:```|~~~|<<<<<<<|diff --git |--- |\*\*\* )")
"""What begins an edit; the line before it may name the file."""


class NotThisCode(NamedTuple):
    """What an answer says about tests that fail for another reason than the code."""

    ids: tuple[str, ...]
    """The targets that it names."""
    reason: str
    ignored: tuple[str, ...]
    """Names that are no targets: the first few."""
    remaining_text: str
    """The rest of the answer."""


def find_not_this_code(answer: str, targets: Collection[str]) -> NotThisCode | None:
    """Parse `NOT THIS CODE:` with test IDs, on the line and in the list below it, and the paragraph of the reason.

    A file, a class or a test without its parameters stands for the targets in it. None if no target is named.
    """
    label = _LABEL.search(answer) if len(answer) <= LONGEST_ANSWER else None
    if label is None:
        return None
    ids: dict[str, None] = {}
    ignored: dict[str, None] = {}
    _collect(label["ids"], targets, ids, ignored)
    lines = answer[label.end() :].split("\n")[1:]
    index = 0
    while index < len(lines) and _names_targets(lines[index], targets):
        _collect(_LIST_ITEM.sub("", lines[index]), targets, ids, ignored)
        index += 1
    reason_lines, index = _take_paragraph(lines, index)
    if not ids:
        return None
    reason = clip(to_one_line(" ".join(reason_lines)).strip(), LONGEST_REASON)
    text = answer[: label.start()] + "\n".join(lines[index:])
    return NotThisCode(tuple(ids), reason, tuple(ignored)[:MOST_IGNORED], text)


def _collect(text: str, targets: Collection[str], ids: dict[str, None], ignored: dict[str, None]) -> None:
    for word in _split(text):
        found = _find_targets(word, targets)
        (ids if found else ignored).update(dict.fromkeys(found or (clip(word, 200),)))


def _split(text: str) -> list[str]:
    """Split at commas and blanks outside of brackets, which hold a test's parameters."""
    words = (word.strip("`'\"*") for word in _SEPARATOR.split(text[:20_000].strip("` \t*")))
    return [word.rstrip(".;") for word in words if word and word.casefold() != "and"]


def _names_targets(line: str, targets: Collection[str]) -> bool:
    words = _split(_LIST_ITEM.sub("", line))
    return bool(words) and all(_find_targets(word, targets) for word in words)


def _find_targets(name: str, targets: Collection[str]) -> list[str]:
    if name in targets:
        return [name]
    starts = (f"{name}::", f"{name}[", f"{name}.")
    return [target for target in targets if target.startswith(starts)] if name else []


def _take_paragraph(lines: list[str], index: int) -> tuple[list[str], int]:
    """Return the paragraph that begins here, after blank lines, and the index of the line after it."""
    start = index
    while index < len(lines) and not lines[index].strip():
        index += 1
    first = index
    while index < len(lines) and lines[index].strip() and not _begins_other_part(lines, index):
        index += 1
    return (lines[first:index], index) if index > first else ([], start)


def _begins_other_part(lines: list[str], index: int) -> bool:
    return bool(_LABELED.match(lines[index]) or any(map(_EDIT.match, lines[index : index + 2])))
