"""Search/replace blocks out of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.reading.surroundings import is_fence, path_above, path_in

_HEAD = re.compile(r"^\s*(?P<mark><{5,9}) ?(?:SEARCH|ORIGINAL|OLD|HEAD|BEFORE)?\b[: ]*(?P<rest>.*)$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={5,9}(?: +[A-Za-z][\w /-]*)?\s*$")
_TAIL = re.compile(r"^\s*>{5,9}(?!>).*$")

NO_PATH = "a search/replace block has no file path on the line above it"
NOT_COMPLETE = "the answer has a search/replace block that is not complete (SEARCH, =======, REPLACE)"
TWO_MIDDLES = "a search/replace block has several ======= lines: give longer ones to the block's own"


class Taken(NamedTuple):
    """The edits, what is left of the answer, and why there is none where one was begun."""

    edits: tuple[Edit, ...]
    rest: tuple[str, ...]
    fault: str = ""


def blocks(lines: Sequence[str]) -> Taken:
    edits: list[Edit] = []
    rest: list[str] = []
    at, path = 0, ""
    while at < len(lines):
        head = _HEAD.match(lines[at])
        if head is None or not (lines[at].strip().strip("<") or _middle_follows(lines, at)):
            rest.append(lines[at])
            at += 1
            continue
        end = next((n for n in range(at + 1, len(lines)) if _TAIL.match(lines[n])), None)
        begun = next((n for n in range(at + 1, len(lines)) if _opens(lines[n])), len(lines))
        if end is None or begun < end:
            return Taken((), (), NOT_COMPLETE)
        path = path_in(head["rest"]) or path_above(rest, len(rest)) or path
        if not path:
            return Taken((), (), NO_PATH)
        body = _dedented(lines[at], lines[at + 1 : end])
        middles = _middles(body, len(head["mark"]))
        if len(middles) != 1:
            return Taken((), (), TWO_MIDDLES if middles else NOT_COMPLETE)
        search, text = (_unfenced(part) for part in (body[: middles[0]], body[middles[0] + 1 :]))
        edits.append(
            Edit(kind=EditKind.block, path=path, search=_joined(search), text=_joined(text), number=len(edits) + 1)
        )
        at = end + 1
    return Taken(tuple(edits), tuple(rest))


def _opens(line: str) -> bool:
    head = _HEAD.match(line)
    return head is not None and bool(line.strip().strip("<"))


def _middle_follows(lines: Sequence[str], at: int) -> bool:
    return any(_MIDDLE.match(line) for line in lines[at + 1 :])


def _middles(body: Sequence[str], width: int) -> list[int]:
    """The lines that may part the two halves: those as wide as the block's first mark, if there are any."""
    found = [at for at, line in enumerate(body) if _MIDDLE.match(line)]
    return [at for at in found if len(body[at].strip()) == width and body[at] == body[at].strip()] or found


def _dedented(head: str, body: Sequence[str]) -> list[str]:
    """A block that stands indented as a whole, such as in a list."""
    indent = head[: len(head) - len(head.lstrip())]
    if indent and all(line.startswith(indent) or not line.strip() for line in body):
        return [line.removeprefix(indent) for line in body]
    return list(body)


def _unfenced(part: list[str]) -> list[str]:
    """Without a fence of its own around a half."""
    if len(part) >= 2 and is_fence(part[0]) and is_fence(part[-1]):
        return part[1:-1]
    return part


def _joined(part: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in part)
