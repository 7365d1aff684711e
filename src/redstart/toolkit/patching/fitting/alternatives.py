"""Other ways to read a search/replace block whose search text, as it stands, is nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_NUMBER = re.compile(r"^\s*(\d+)(?:\s?[|:│.)\t]|(?= )) ?")


class Reading(NamedTuple):
    search: tuple[str, ...]
    text: tuple[str, ...]


def readings(search: Sequence[str], text: Sequence[str]) -> Iterator[Reading]:
    """Without a diff's signs before the lines, and without line numbers before them."""
    old, new = _all_signs(search, "-"), _all_signs(text, "+")
    if old is not None and new is not None:
        yield Reading(old, new)
    if any(line.startswith("-") for line in search) or any(line.startswith("+") for line in text):
        yield Reading(_some_signs(search, "-"), _some_signs(text, "+"))
    old, new = _unnumbered(search), _unnumbered(text)
    if old is not None and (new is not None or not any(_NUMBER.match(line) for line in text)):
        yield Reading(old, tuple(text) if new is None else new)


def _all_signs(lines: Sequence[str], sign: str) -> tuple[str, ...] | None:
    if not all(line[:1] in ("", sign, " ") for line in lines):
        return None
    return tuple(line[1:] for line in lines)


def _some_signs(lines: Sequence[str], sign: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(sign) for line in lines)


def _unnumbered(lines: Sequence[str]) -> tuple[str, ...] | None:
    """The lines without their numbers; None unless every line that says something has one, in rising order."""
    said = [line for line in lines if line.strip()]
    found = [_NUMBER.match(line) for line in said]
    numbers = [int(one[1]) for one in found if one]
    if len(numbers) != len(said) or not said or any(one >= other for one, other in pairwise(numbers)):
        return None
    return tuple(_NUMBER.sub("", line, count=1) for line in lines)
