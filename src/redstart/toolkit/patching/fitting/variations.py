"""Ways in which a whole hunk may differ from the file: one bend for all of its lines, or none."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from redstart.toolkit.patching.hunks import STAYS, Hunk, Line

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27|#34);")
_CURLY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_GUTTER = re.compile(r"^\s*\d+(?: ?[|:│] ?|[.)] |\t| )")
_TIGHT_GUTTER = re.compile(r"^\s*\d+(?: ?[|:│]|[.)]|\t|(?= ))")


Bend = Callable[[str], str | None]
"""Gives what a line must have been; None where it cannot have been bent in this way."""


def leading(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def shift(old: str, real: str) -> Bend | None:
    """The bend that turns the indentation of `old` into that of `real`, by adding or cutting at the left."""
    before, after = leading(old), leading(real)
    if old[len(before) :].rstrip() != real[len(after) :].rstrip() or before == after:
        return None
    if after.endswith(before):
        more = after[: len(after) - len(before)]
        return partial(_push, more=more)
    if before.endswith(after):
        less = before[: len(before) - len(after)]
        return partial(_cut, less=less)
    return None


def retabbed() -> Iterator[Bend]:
    """Tabs for spaces and the reverse, at the usual widths."""
    for width in (4, 8, 2):
        yield partial(_tabs, width=width)
        yield partial(_spaces, width=width)


def restyled(lines: Sequence[str], hunk: Hunk) -> Hunk:
    """The hunk with what comes indented by tabs where the file uses nothing else, if no old line could tell."""
    margins = {leading(line)[:1] for line in lines if line.strip()}
    if margins - {""} != {"\t"} or any(leading(line.text) for line in hunk.old):
        return hunk
    depths = [len(leading(line.text)) for line in hunk.lines if leading(line.text).strip("\t")]
    if not depths or min(depths) not in (2, 4, 8):
        return hunk
    return bent(hunk, partial(_tabs, width=min(depths))) or hunk


def unwrapped(lines: Sequence[str]) -> Iterator[Bend]:
    """What a display or a transport did to every line: line numbers at the left, escaped characters."""
    said = [line for line in lines if line.strip()]
    if said and all(_GUTTER.match(line) for line in said):
        yield partial(_GUTTER.sub, "", count=1)
        yield partial(_TIGHT_GUTTER.sub, "", count=1)
    if any(_ENTITY.search(line) for line in said):
        yield html.unescape
    if any(line != line.translate(_CURLY) for line in said):
        yield _straight


def foreign_signs(lines: Sequence[str], hunk: Hunk, new: Sequence[str]) -> str:
    """Escaped characters or curly quotes in the new lines, where neither the file has any nor an old line shows that
    the answer writes such characters plainly; else nothing. A transport may have put them there.
    """
    coming = "\n".join(new)
    old = "\n".join(line.text for line in hunk.old)
    file = "\n".join(lines)
    if _ENTITY.search(coming) and not _ENTITY.search(file) and not any(sign in old for sign in "<>&"):
        return "escaped characters"
    curly = coming != _straight(coming) and file == _straight(file)
    return "curly quotes" if curly and not any(sign in old for sign in "'\"") else ""


def bent(hunk: Hunk, bend: Bend) -> Hunk | None:
    lines: list[Line] = []
    for line in hunk.lines:
        text = bend(line.text)
        if text is None:
            return None
        lines.append(Line(line.mark, text, text if line.mark == STAYS else ""))
    return hunk._replace(lines=tuple(lines))


def _straight(text: str) -> str:
    return text.translate(_CURLY)


def _push(text: str, more: str) -> str:
    return more + text if text.strip() else text


def _cut(text: str, less: str) -> str | None:
    if not text.strip():
        return ""
    return text[len(less) :] if text.startswith(less) else None


def _tabs(text: str, width: int) -> str:
    columns = len(leading(text).expandtabs(width))
    return "\t" * (columns // width) + " " * (columns % width) + text.lstrip(" \t")


def _spaces(text: str, width: int) -> str:
    return leading(text).expandtabs(width) + text.lstrip(" \t")
