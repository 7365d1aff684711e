"""Wrap text at words, for a terminal of a known width."""

from __future__ import annotations

import re

from rich.cells import cell_len

from redstart.core.safe_text import escape_hidden

_BLANKS = re.compile(r"( +)(?!·)")
"""Blanks where a line may be broken. A separator stays at the end of its line."""
_AFTER_SEPARATOR = re.compile(r"(?<= ·)( +)")


def wrap(text: str, width: int | None, *, hang: int | None = None) -> list[str]:
    """Wrap a text into lines of at most `width` cells, between words only.

    Continuation lines are indented by `hang` blanks; without it, like the line that they continue. A word that is
    longer than a whole line overflows. Without a width, as for logs, nothing is wrapped.
    """
    lines: list[str] = []
    for line in escape_hidden(text).replace("\t", "    ").split("\n"):
        own_indent = len(line) - len(line.lstrip(" "))
        lines += _wrap_line(line, width, own_indent if hang is None else hang)
    return lines


def _wrap_line(line: str, width: int | None, hang: int) -> list[str]:
    if width is None or cell_len(line) <= width:
        return [line]
    lines, current = list[str](), ""
    for blanks, word in _split_words(line, width - hang):
        if current.strip() and cell_len(current + blanks + word) > width:
            lines.append(current)
            current = " " * hang + word
        else:
            current += blanks + word
    return [*lines, current]


def _split_words(line: str, max_width: int) -> list[tuple[str, str]]:
    """Split a line into words, each with the blanks before it; at separators instead if the parts between them fit."""
    pieces = _AFTER_SEPARATOR.split(line)
    if len(pieces) == 1 or any(cell_len(piece) > max_width for piece in pieces):
        pieces = _BLANKS.split(line)
    return [("", pieces[0]), *zip(pieces[1::2], pieces[2::2], strict=True)]
