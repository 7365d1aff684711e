"""Package names that look like another package's, and lists of popular names that an attacker may imitate."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

from redstart.toolkit.installs.manager import get_manager

SHORTEST = 5
"""Minimum length of a popular name for the one-edit check: `six` and `fix` are not typos of one another."""

_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁԛոѡɡɩαβορυνικτ01|",
    "aeopcyxijsdqnwgiabopuvikt" + "oll",
)
_SEPARATORS = re.compile(r"[-_.]+")


def hyphenate(name: str) -> str:
    """Convert the name to lower case with single hyphens."""
    return _SEPARATORS.sub("-", name).lower()


def load_names(language: str) -> frozenset[str]:
    """Load a list of names that ships with Redstart; each file states its source."""
    text = files("redstart.toolkit.installs").joinpath("popular", f"{language}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if line and not line.startswith("#"))


def normalize_name(name: str, language: str) -> str:
    """Normalize the name as its index does."""
    return get_manager(language).normalize(name)


@cache
def get_popular_names(language: str) -> frozenset[str]:
    """Return the names of packages that many projects use."""
    return frozenset(get_manager(language).list_popular())


def find_imitated(name: str, language: str) -> str:
    """Return the popular package that this name could be mistaken for; empty if it is popular itself, or similar to
    none."""
    if normalize_name(name, language) in get_popular_names(language):
        return ""
    appearance = _normalize_appearance(name)
    if match := _index_by_appearance(language).get(appearance):
        return match
    similar = (
        item
        for item in sorted(get_popular_names(language))
        if len(item) >= SHORTEST and is_within_one_edit(name.lower(), item)
    )
    return next(similar, "")


def describe_foreign_letters(name: str, language: str) -> str:
    """Describe in a sentence what is wrong with a name whose letters only look like ordinary ones, and which no index
    would have."""
    imitated_name = find_imitated(name, language)
    warning = f": it can be mistaken for {imitated_name}" if imitated_name else ""
    return f"{ascii(name)[1:-1][:80]} has letters in its name that only look like usual ones{warning}."


def is_within_one_edit(left: str, right: str) -> bool:
    """Return whether adding, removing or changing one letter, or swapping two neighbors, turns one name into the
    other."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    left, right = left[start:], right[start:]
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    return len(left) + len(right) <= 1 or (len(left) == len(right) == 1) or (len(left) == 2 and left == right[::-1])


def _normalize_appearance(name: str) -> str:
    """Reduce the name to its appearance: similar letters become the same, and separators are dropped."""
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKES)
    return _SEPARATORS.sub("", folded)


@cache
def _index_by_appearance(language: str) -> dict[str, str]:
    return {_normalize_appearance(item): item for item in sorted(get_popular_names(language))}
