"""Parse search/replace blocks in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditKind

_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_PATH = r"[\w@.+~-]*(?:[\\/][\w@.+~ \[\]()-]+)*[\w@+~-]+\.\w{1,12}|[\w@.+~/\\-]*[\\/][\w@.+~-]+|Makefile|Dockerfile"
_QUOTED_PATH = re.compile(rf"[`*\"'](?P<path>{_PATH})[`*\"']")
_LABEL = re.compile(r"^(?:[-*+]\s+|\d+[.)]\s+)?(?:file(?:name)?|path)\s*[:=]\s*", re.IGNORECASE)


class CodeFence(NamedTuple):
    """A fenced passage; lines `start` to `stop` (exclusive) of the answer are inside."""

    start: int
    stop: int
    info: str
    is_closed: bool
    indent: str = ""


def find_fences(lines: Sequence[str]) -> Iterator[CodeFence]:
    """Yield the fenced passages. One ends at the next line that is only a fence at least as long as its own.

    A fence of the same kind that names a language opens a nested passage, which ends first.
    """
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        if opening is None:
            index += 1
            continue
        end, depth = index + 1, 0
        while end < len(lines) and not (_is_closing(lines[end], opening["fence"]) and not depth):
            depth += _opens_nested(lines[end], opening["fence"]) - (
                _is_closing(lines[end], opening["fence"]) and depth > 0
            )
            end += 1
        yield CodeFence(index + 1, end, opening["info"].strip(), end < len(lines), opening["indent"])
        index = end + 1


def is_fence(line: str) -> bool:
    """Return whether the line is a fence at the left margin: an indented one may be context of a diff."""
    return line.startswith(("```", "~~~")) and _FENCE.match(line) is not None


def find_path(line: str) -> str:
    """Return the path that a line names, if it says little else; empty otherwise."""
    text = line.strip().strip("*#").strip()
    text = _LABEL.sub("", text).strip()
    candidate = text.strip("`*\"' \t:#")
    if " " not in candidate and re.fullmatch(_PATH, candidate):
        return clean(candidate)
    quoted = {match["path"] for match in _QUOTED_PATH.finditer(line)}
    return clean(quoted.pop()) if len(quoted) == 1 else ""


def find_path_in_info(info: str) -> str:
    """Return the path in the info string of a fence: ```python path=src/a.py, ```src/a.py, ```py:src/a.py."""
    for word in reversed(re.split(r"[\s=:]+", info)):
        candidate = word.strip("`*\"'{}")
        if re.fullmatch(_PATH, candidate) and ("/" in candidate or "." in candidate):
            return clean(candidate)
    return ""


def find_path_above(lines: Sequence[str], index: int, max_distance: int = 5) -> str:
    """Return the path in the nearest lines above line `index`; more than one other non-empty line ends the search."""
    prose_lines = 0
    for line in reversed(lines[max(index - max_distance, 0) : index]):
        fence = _FENCE.match(line)
        path = find_path_in_info(fence["info"]) if fence else find_path(line)
        if path:
            return path
        prose_lines += bool(line.strip()) and fence is None
        if prose_lines > 1:
            return ""
    return ""


def clean(path: str) -> str:
    return path.strip().removeprefix("./")


def _opens_nested(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return match is not None and not match["indent"] and match["fence"] == fence and bool(match["info"].strip())


def _is_closing(line: str, fence: str) -> bool:
    text = line.strip()
    return len(line) - len(line.lstrip()) <= 3 and len(text) >= len(fence) and set(text) == {fence[0]}


_HEAD = re.compile(r"^\s*(?P<mark><{5,9}) ?(?:SEARCH|ORIGINAL|OLD|HEAD|BEFORE)?\b[: ]*(?P<rest>.*)$", re.IGNORECASE)
_MIDDLE = re.compile(r"^\s*={5,9}(?: +[A-Za-z][\w /-]*)?\s*$")
_BLOCK_END = re.compile(r"^\s*>{5,9}(?!>).*$")

NO_PATH = "a search/replace block has no file path on the line above it"
NOT_COMPLETE = "the answer has a search/replace block that is not complete (SEARCH, =======, REPLACE)"
TWO_MIDDLES = "a search/replace block has several ======= lines: give longer ones to the block's own"


class ParsedBlocks(NamedTuple):
    """The edits, the rest of the answer, and the reason for having no edit although one was begun."""

    edits: tuple[Edit, ...]
    remaining_lines: tuple[str, ...]
    fault: str = ""


def parse_blocks(lines: Sequence[str]) -> ParsedBlocks:
    edits: list[Edit] = []
    rest: list[str] = []
    index, path = 0, ""
    while index < len(lines):
        head = _HEAD.match(lines[index])
        if head is None or not (lines[index].strip().strip("<") or _has_middle_after(lines, index)):
            rest.append(lines[index])
            index += 1
            continue
        end = next((n for n in range(index + 1, len(lines)) if _BLOCK_END.match(lines[n])), None)
        next_start = next((n for n in range(index + 1, len(lines)) if _is_block_start(lines[n])), len(lines))
        if end is None or next_start < end:
            return ParsedBlocks((), (), NOT_COMPLETE)
        path = find_path(head["rest"]) or find_path_above(rest, len(rest)) or path
        if not path:
            return ParsedBlocks((), (), NO_PATH)
        body = _dedent(lines[index], lines[index + 1 : end])
        middles = _find_middles(body, len(head["mark"]))
        if len(middles) != 1:
            return ParsedBlocks((), (), TWO_MIDDLES if middles else NOT_COMPLETE)
        search, text = (_strip_fence(part) for part in (body[: middles[0]], body[middles[0] + 1 :]))
        edits.append(
            Edit(
                kind=EditKind.block,
                path=path,
                search=_join_lines(search),
                text=_join_lines(text),
                number=len(edits) + 1,
            )
        )
        index = end + 1
    return ParsedBlocks(tuple(edits), tuple(rest))


def _is_block_start(line: str) -> bool:
    head = _HEAD.match(line)
    return head is not None and bool(line.strip().strip("<"))


def _has_middle_after(lines: Sequence[str], index: int) -> bool:
    return any(_MIDDLE.match(line) for line in lines[index + 1 :])


def _find_middles(body: Sequence[str], width: int) -> list[int]:
    """Find the lines that may divide the halves: those as wide as the block's first mark, if there are any."""
    candidates = [index for index, line in enumerate(body) if _MIDDLE.match(line)]
    return [
        index for index in candidates if len(body[index].strip()) == width and body[index] == body[index].strip()
    ] or candidates


def _dedent(head: str, body: Sequence[str]) -> list[str]:
    """Dedent a block that is indented as a whole, for example in a list."""
    indent = head[: len(head) - len(head.lstrip())]
    if indent and all(line.startswith(indent) or not line.strip() for line in body):
        return [line.removeprefix(indent) for line in body]
    return list(body)


def _strip_fence(part: list[str]) -> list[str]:
    """Strip a fence around one half."""
    if len(part) >= 2 and is_fence(part[0]) and is_fence(part[-1]):
        return part[1:-1]
    return part


def _join_lines(part: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in part)
