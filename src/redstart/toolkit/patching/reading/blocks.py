"""Parses search/replace blocks in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditKind

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_PATH = r"[\w@.+~-]*(?:[\\/][\w@.+~ \[\]()-]+)*[\w@+~-]+\.\w{1,12}|[\w@.+~/\\-]*[\\/][\w@.+~-]+|Makefile|Dockerfile"
_QUOTED = re.compile(rf"[`*\"'](?P<path>{_PATH})[`*\"']")
_LABEL = re.compile(r"^(?:[-*+]\s+|\d+[.)]\s+)?(?:file(?:name)?|path)\s*[:=]\s*", re.IGNORECASE)


class CodeFence(NamedTuple):
    """A fenced passage; lines `start` to `stop` (exclusive) of the answer are inside."""

    start: int
    stop: int
    info: str
    closed: bool
    margin: str = ""


def fences(lines: Sequence[str]) -> Iterator[CodeFence]:
    """Yield the fenced passages. One ends at the next line that is only a fence at least as long as its own.

    A fence of the same kind that names a language opens a nested passage, which ends first.
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
        yield CodeFence(at + 1, end, opened["info"].strip(), end < len(lines), opened["indent"])
        at = end + 1


def is_fence(line: str) -> bool:
    """Return whether the line is a fence at the left margin: an indented one may be context of a diff."""
    return line.startswith(("```", "~~~")) and _FENCE.match(line) is not None


def path_in(line: str) -> str:
    """Return the path that a line names, if it says little else; empty otherwise."""
    plain = line.strip().strip("*#").strip()
    plain = _LABEL.sub("", plain).strip()
    bare = plain.strip("`*\"' \t:#")
    if " " not in bare and re.fullmatch(_PATH, bare):
        return clean(bare)
    quoted = {found["path"] for found in _QUOTED.finditer(line)}
    return clean(quoted.pop()) if len(quoted) == 1 else ""


def path_in_info(info: str) -> str:
    """Return the path in the info string of a fence: ```python path=src/a.py, ```src/a.py, ```py:src/a.py."""
    for word in reversed(re.split(r"[\s=:]+", info)):
        plain = word.strip("`*\"'{}")
        if re.fullmatch(_PATH, plain) and ("/" in plain or "." in plain):
            return clean(plain)
    return ""


def path_above(lines: Sequence[str], at: int, reach: int = 5) -> str:
    """Return the path in the nearest lines above line `at`; more than one other non-empty line ends the search."""
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


_HEAD = re.compile(r"^\s*(?P<mark><{5,9}) ?(?:SEARCH|ORIGINAL|OLD|HEAD|BEFORE)?\b[: ]*(?P<rest>.*)$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={5,9}(?: +[A-Za-z][\w /-]*)?\s*$")
_TAIL = re.compile(r"^\s*>{5,9}(?!>).*$")

NO_PATH = "a search/replace block has no file path on the line above it"
NOT_COMPLETE = "the answer has a search/replace block that is not complete (SEARCH, =======, REPLACE)"
TWO_MIDDLES = "a search/replace block has several ======= lines: give longer ones to the block's own"


class ParsedBlocks(NamedTuple):
    """The edits, the rest of the answer, and the reason for having no edit although one was begun."""

    edits: tuple[Edit, ...]
    rest: tuple[str, ...]
    fault: str = ""


def blocks(lines: Sequence[str]) -> ParsedBlocks:
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
            return ParsedBlocks((), (), NOT_COMPLETE)
        path = path_in(head["rest"]) or path_above(rest, len(rest)) or path
        if not path:
            return ParsedBlocks((), (), NO_PATH)
        body = _dedented(lines[at], lines[at + 1 : end])
        middles = _middles(body, len(head["mark"]))
        if len(middles) != 1:
            return ParsedBlocks((), (), TWO_MIDDLES if middles else NOT_COMPLETE)
        search, text = (_unfenced(part) for part in (body[: middles[0]], body[middles[0] + 1 :]))
        edits.append(
            Edit(kind=EditKind.block, path=path, search=_joined(search), text=_joined(text), number=len(edits) + 1)
        )
        at = end + 1
    return ParsedBlocks(tuple(edits), tuple(rest))


def _opens(line: str) -> bool:
    head = _HEAD.match(line)
    return head is not None and bool(line.strip().strip("<"))


def _middle_follows(lines: Sequence[str], at: int) -> bool:
    return any(_MIDDLE.match(line) for line in lines[at + 1 :])


def _middles(body: Sequence[str], width: int) -> list[int]:
    """Find the lines that may divide the halves: those as wide as the block's first mark, if there are any."""
    found = [at for at, line in enumerate(body) if _MIDDLE.match(line)]
    return [at for at in found if len(body[at].strip()) == width and body[at] == body[at].strip()] or found


def _dedented(head: str, body: Sequence[str]) -> list[str]:
    """Dedent a block that is indented as a whole, for example in a list."""
    indent = head[: len(head) - len(head.lstrip())]
    if indent and all(line.startswith(indent) or not line.strip() for line in body):
        return [line.removeprefix(indent) for line in body]
    return list(body)


def _unfenced(part: list[str]) -> list[str]:
    """Strip a fence around one half."""
    if len(part) >= 2 and is_fence(part[0]) and is_fence(part[-1]):
        return part[1:-1]
    return part


def _joined(part: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in part)
