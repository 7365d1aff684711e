"""Find failures that show only that a name or signature does not exist: in the old code or in the new code."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.core.learning import ASSERTION_TYPES
from redstart.core.report import Case
from redstart.toolkit.suites.reading.exceptions import list_exceptions

_WORD = re.compile(rb"[^\W\d]\w*")
_NO_OBJECT = re.compile(r"'NoneType' object|\b(?:undefined|null)\b")
"""A value is missing there, not a name."""
_MISSING = tuple(
    re.compile(pattern)
    for pattern in (
        r"cannot import name '(\w+)'",
        r"No module named '(?:[\w.]*\.)?(\w+)'",
        r"has no attribute '(\w+)'",
        r"\bname '(\w+)' is not defined",
        r"fixture '(\w+)' not found",
        r"\b(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'",
        r"\b(?:(\w+)\.)?(\w+)\(\) (?:missing \d+ required|takes .*\barguments? but )",
        r"does not provide an export named '(\w+)'",
        r"Cannot find module '(?:[^']*/)?(\w+)(?:\.\w+)*'",
        r"\b(\w+) is not (?:a function|a constructor|defined)\b",
    )
)


class ChangedWords(NamedTuple):
    """The identifiers in the lines of the source that a change removes and adds, with the names of such modules."""

    removed: frozenset[str]
    added: frozenset[str]


class FileVersions(NamedTuple):
    """A changed file; a side is empty if the file does not exist there."""

    path: str
    before: bytes
    after: bytes


def collect_changed_words(files: Iterable[FileVersions]) -> ChangedWords:
    """Collect the identifiers of the changed lines of these source files."""
    removed, added = set[str](), set[str]()
    for file in files:
        old, new = file.before.splitlines(), file.after.splitlines()
        stem = PurePosixPath(file.path).stem
        names = {stem, PurePosixPath(file.path).parent.name}
        removed |= names if old and not new else set()
        added |= names if new and not old else set()
        for tag, start, end, new_start, new_end in difflib.SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            if tag != "equal":
                removed |= _list_words(old[start:end])
                added |= _list_words(new[new_start:new_end])
    return ChangedWords(frozenset(removed), frozenset(added))


def find_missing_name(case: Case, words: frozenset[str]) -> str:
    """Return the name that a failing test lacks, if it fails only for that and the name is one of `words`; else empty.

    `words` are the identifiers that the other side has and this one does not.
    """
    exceptions = list_exceptions(case)
    last = exceptions[-1] if exceptions else None
    text = last.text if last and last.text else case.message
    if _NO_OBJECT.search(text) or (last and last.type in ASSERTION_TYPES):
        return ""
    for pattern in _MISSING:
        if match := pattern.search(text):
            return next((name for name in reversed(match.groups()) if name in words), "")
    return ""


def _list_words(lines: Iterable[bytes]) -> set[str]:
    return {word.decode(errors="replace") for line in lines for word in _WORD.findall(line)}
