"""Two versions of a file beside each other, for a question that a person has to answer."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from redstart.core.visible import visible_line

AROUND = 2
"""Lines shown before and after each place that differs."""


def side_by_side(old: str, new: str, width: int) -> Iterator[tuple[str, str]]:
    """Each line to show, with its mark: `changed`, `same` or `gap`. Lines that are too long are cut."""
    half = max((width - 3) // 2, 10)
    was, now = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, was, now, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(AROUND)):
        if number:
            yield "gap", "…"
        for tag, start, end, first, last in group:
            for offset in range(max(end - start, last - first)):
                left = was[start + offset] if start + offset < end else ""
                right = now[first + offset] if first + offset < last else ""
                yield ("same" if tag == "equal" else "changed"), f"{_cut(left, half)} │ {_cut(right, half)}".rstrip()


def _cut(text: str, width: int) -> str:
    shown = visible_line(text.expandtabs(4))
    return f"{shown[: width - 1]}…" if len(shown) > width else shown.ljust(width)
