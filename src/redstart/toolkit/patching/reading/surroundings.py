"""What surrounds edits in an answer: fences, and lines that name a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_PATH = r"[\w@.+~-]*(?:[\\/][\w@.+~ \[\]()-]+)*[\w@+~-]+\.\w{1,12}|[\w@.+~/\\-]*[\\/][\w@.+~-]+|Makefile|Dockerfile"
_QUOTED = re.compile(rf"[`*\"'](?P<path>{_PATH})[`*\"']")
_LABEL = re.compile(r"^(?:[-*+]\s+|\d+[.)]\s+)?(?:file(?:name)?|path)\s*[:=]\s*", re.IGNORECASE)


class Fence(NamedTuple):
    """A fenced passage: lines `start` to `stop` (exclusive) of the answer are inside."""

    start: int
    stop: int
    info: str
    closed: bool
    margin: str = ""


def fences(lines: Sequence[str]) -> Iterator[Fence]:
    """The fenced passages. One ends at the next line that is nothing but a fence as long as its own.

    A fence of the same kind that names a language opens one inside it, which ends first.
    """
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        end, inner = at + 1, 0
        while end < len(lines) and not (_closes(lines[end], opened["fence"]) and not inner):
            inner += _nests(lines[end], opened["fence"]) - (_closes(lines[end], opened["fence"]) and inner > 0)
            end += 1
        yield Fence(at + 1, end, opened["info"].strip(), end < len(lines), opened["indent"])
        at = end + 1


def is_fence(line: str) -> bool:
    """Whether the line opens or closes a fence at the left margin: further right it may be context of a diff."""
    return line.startswith(("```", "~~~")) and _FENCE.match(line) is not None


def path_in(line: str) -> str:
    """The path that a line names, if it names one and says little else; else nothing."""
    plain = line.strip().strip("*#").strip()
    plain = _LABEL.sub("", plain).strip()
    bare = plain.strip("`*\"' \t:#")
    if " " not in bare and re.fullmatch(_PATH, bare):
        return clean(bare)
    quoted = {found["path"] for found in _QUOTED.finditer(line)}
    return clean(quoted.pop()) if len(quoted) == 1 else ""


def path_in_info(info: str) -> str:
    """The path in what follows the opening of a fence: ```python path=src/a.py, ```src/a.py, ```py:src/a.py."""
    for word in reversed(re.split(r"[\s=:]+", info)):
        plain = word.strip("`*\"'{}")
        if re.fullmatch(_PATH, plain) and ("/" in plain or "." in plain):
            return clean(plain)
    return ""


def path_above(lines: Sequence[str], at: int, reach: int = 5) -> str:
    """The path named by the nearest lines above line `at`; other text that is not empty ends the search."""
    said = 0
    for line in reversed(lines[max(at - reach, 0) : at]):
        fence = _FENCE.match(line)
        path = path_in_info(fence["info"]) if fence else path_in(line)
        if path:
            return path
        said += bool(line.strip()) and fence is None
        if said > 1:
            return ""
    return ""


def clean(path: str) -> str:
    return path.strip().removeprefix("./")


def _nests(line: str, fence: str) -> bool:
    found = _FENCE.match(line)
    return found is not None and not found["indent"] and found["fence"] == fence and bool(found["info"].strip())


def _closes(line: str, fence: str) -> bool:
    plain = line.strip()
    return len(line) - len(line.lstrip()) <= 3 and len(plain) >= len(fence) and set(plain) == {fence[0]}
