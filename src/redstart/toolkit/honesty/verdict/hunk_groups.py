"""Which hunks of a change belong together, so that none of them is left out alone.

Tests seldom demand everything that a good fix does. What they do not demand is not litter if it is part of the same
work: another line of the same function, a call of a changed function, the same change in a twin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from redstart.toolkit.honesty.verdict.hunks import ChangeHunk, Files
from redstart.toolkit.languages.registry import find_file_language

HunkNumbers = frozenset[int]
_WORD = re.compile(rb"[A-Za-z_]\w*")
_SHORTEST = 12
"""Shorter added lines, such as `return None`, are no sign that two hunks make the same change."""


class _Definition(NamedTuple):
    name: str
    start: int
    end: int
    margin: int


def group_hunks(before: Files, hunks: Sequence[ChangeHunk]) -> tuple[HunkNumbers, ...]:
    """Group the hunks that belong together, in the order of their first hunks.

    They change the same function, one names the function that the other changes, or they add the same line.
    """
    definitions = {path: _list_definitions(path, data) for path, data in before.items()}
    places = [frozenset(_find_places(hunk, definitions.get(hunk.path, ()))) for hunk in hunks]
    names = [frozenset(name.rpartition(".")[2].encode() for _, name in found) for found in places]
    words = [_list_words(before, hunk) for hunk in hunks]
    added = [_list_long_lines(hunk) for hunk in hunks]

    def belong_together(one: int, other: int) -> bool:
        is_same_place = places[one] & places[other]
        is_named = names[one] & words[other] or names[other] & words[one]
        return bool(is_same_place or is_named or added[one] & added[other])

    return _join(len(hunks), belong_together)


def _list_definitions(path: str, data: bytes | None) -> list[_Definition]:
    language = find_file_language(path)
    lines = (data or b"").decode("utf-8", "replace").splitlines()
    symbols = language.outline(lines) if language and lines else None
    return [
        _Definition(symbol.name, symbol.start, symbol.end, _measure_margin(lines[symbol.start - 1]))
        for symbol in symbols or ()
    ]


def _find_places(hunk: ChangeHunk, definitions: Iterable[_Definition]) -> Iterator[tuple[str, str]]:
    """Find the innermost definitions that the hunk changes, each with its path."""
    if hunk.is_whole_file:
        return
    containing = [
        [item for item in definitions if item.start <= line <= item.end] for line in range(hunk.start + 1, hunk.end + 1)
    ]
    if hunk.end == hunk.start:
        margin = next(
            (_measure_margin(line.decode("utf-8", "replace")) for line in hunk.lines or () if line.strip()), 0
        )
        containing = [
            [
                item
                for item in definitions
                if item.start <= hunk.start
                and (hunk.start < item.end or (hunk.start == item.end and margin > item.margin))
            ]
        ]
    for found in containing:
        if found:
            yield hunk.path, max(found, key=lambda item: item.start).name


def _measure_margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _list_words(before: Files, hunk: ChangeHunk) -> frozenset[bytes]:
    """List the words of the lines that the hunk changes; nothing for a whole file or for text without code."""
    if hunk.is_whole_file or find_file_language(hunk.path) is None:
        return frozenset()
    old = (before.get(hunk.path) or b"").splitlines()[hunk.start : hunk.end]
    words = (word for line in (*old, *(hunk.lines or ())) for word in _WORD.findall(line))
    return frozenset(word for word in words if not word.startswith(b"__"))


def _list_long_lines(hunk: ChangeHunk) -> frozenset[bytes]:
    return frozenset(line.strip() for line in hunk.lines or () if len(line.strip()) >= _SHORTEST)


def _join(count: int, belong_together: Callable[[int, int], bool]) -> tuple[HunkNumbers, ...]:
    """Join numbers below `count` to groups: two that belong together, directly or through others, share a group."""
    groups: list[set[int]] = []
    for number in range(count):
        near = [group for group in groups if any(belong_together(number, other) for other in group)]
        joined = {number}.union(*near)
        groups = [group for group in groups if group not in near] + [joined]
    return tuple(frozenset(group) for group in sorted(groups, key=min))
