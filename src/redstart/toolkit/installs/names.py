"""Package names that look like another package's, and lists of popular names that an attacker may imitate."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

from redstart.toolkit.installs.manager import manager_of

SHORTEST = 5
"""Minimum length of a popular name for the one-edit check: `six` and `fix` are not typos of one another."""

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁԛոѡɡɩαβορυνικτ01|",
    "aeopcyxijsdqnwgiabopuvikt" + "oll",
)
_SEPARATORS = re.compile(r"[-_.]+")


def hyphenated(name: str) -> str:
    """Convert the name to lower case with single hyphens."""
    return _SEPARATORS.sub("-", name).lower()


def listed(language: str) -> frozenset[str]:
    """Load a list of names that ships with Redstart; each file states its source."""
    text = files("redstart.toolkit.installs").joinpath("popular", f"{language}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if line and not line.startswith("#"))


def normal(name: str, language: str) -> str:
    """Normalize the name as its index does."""
    return manager_of(language).normal(name)


@cache
def popular(language: str) -> frozenset[str]:
    """Return the names of packages that many projects use."""
    return frozenset(manager_of(language).popular())


def imitated(name: str, language: str) -> str:
    """Return the popular package that this name could be mistaken for; empty if it is popular itself, or similar to
    none."""
    if normal(name, language) in popular(language):
        return ""
    looks = _looks(name)
    if same := _by_looks(language).get(looks):
        return same
    near = (item for item in sorted(popular(language)) if len(item) >= SHORTEST and within_one(name.lower(), item))
    return next(near, "")


def foreign_letters(name: str, language: str) -> str:
    """Describe in a sentence what is wrong with a name whose letters only look like ordinary ones, and which no index
    would have."""
    like = imitated(name, language)
    taken = f": it can be mistaken for {like}" if like else ""
    return f"{ascii(name)[1:-1][:80]} has letters in its name that only look like usual ones{taken}."


def within_one(one: str, other: str) -> bool:
    """Return whether adding, removing or changing one letter, or swapping two neighbors, turns one name into the
    other."""
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
    """Reduce the name to its appearance: similar letters become the same, and separators are dropped."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)
    return _SEPARATORS.sub("", folded)


@cache
def _by_looks(language: str) -> dict[str, str]:
    return {_looks(item): item for item in sorted(popular(language))}
