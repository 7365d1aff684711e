"""Names that look like another package's, and lists of those that a stranger would imitate."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

from redstart.toolkit.installs.manager import manager_of

SHORTEST = 5
"""Letters of a popular name below which one edit says nothing: `six` and `fix` are no mistake for one another."""

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁԛոѡɡɩαβορυνικτ01|",
    "aeopcyxijsdqnwgiabopuvikt" + "oll",
)
_SEPARATORS = re.compile(r"[-_.]+")


def hyphenated(name: str) -> str:
    """The name in lower case with single hyphens."""
    return _SEPARATORS.sub("-", name).lower()


def listed(language: str) -> frozenset[str]:
    """Names of a list that comes with Redstart; the files say where they are from."""
    text = files("redstart.toolkit.installs").joinpath("popular", f"{language}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if line and not line.startswith("#"))


def normal(name: str, language: str) -> str:
    """The name as its index spells it."""
    return manager_of(language).normal(name)


@cache
def popular(language: str) -> frozenset[str]:
    """Names that many projects use."""
    return frozenset(manager_of(language).popular())


def imitated(name: str, language: str) -> str:
    """The popular package that this name could be taken for; empty where it is popular itself, or like none."""
    if normal(name, language) in popular(language):
        return ""
    looks = _looks(name)
    if same := _by_looks(language).get(looks):
        return same
    near = (item for item in sorted(popular(language)) if len(item) >= SHORTEST and within_one(name.lower(), item))
    return next(near, "")


def foreign_letters(name: str, language: str) -> str:
    """What is wrong with a name that no index would have, as a sentence, where letters of it only look like others."""
    like = imitated(name, language)
    taken = f": it can be mistaken for {like}" if like else ""
    return f"{ascii(name)[1:-1][:80]} has letters in its name that only look like usual ones{taken}."


def within_one(one: str, other: str) -> bool:
    """Whether a single letter added, lost, changed, or swapped with its neighbour leads from one to the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return len(one) + len(other) <= 1 or (len(one) == len(other) == 1) or (len(one) == 2 and one == other[::-1])


def _looks(name: str) -> str:
    """The name as an eye takes it in: letters that look alike are one, and separators are none."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)
    return _SEPARATORS.sub("", folded)


@cache
def _by_looks(language: str) -> dict[str, str]:
    return {_looks(item): item for item in sorted(popular(language))}
