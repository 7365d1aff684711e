"""`apply_patch` envelopes out of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.hunks import STAYS, of_diff
from redstart.toolkit.patching.reading.blocks import Taken
from redstart.toolkit.patching.reading.surroundings import clean, is_fence

_BEGIN = re.compile(r"^\s*\*{3} Begin Patch\s*$", re.IGNORECASE)
_END = re.compile(r"^\s*\*{3} End Patch\s*$", re.IGNORECASE)
_FILE = re.compile(r"^\*{3} (?P<what>Update|Add|Delete) File: *(?P<path>.+?)\s*$")
_WORD = re.compile(r"^(?:EOF|PATCH|EOS)['\"]?\s*$")

CUT_OFF = "the answer has a patch that is cut off: it ends without *** End Patch"


def envelopes(lines: Sequence[str], ends_with_newline: bool) -> Taken:
    """One edit for each file.

    A patch without its last line is taken where a fence or a word closes it, or where its last hunk has as much context
    behind its changes as before them.
    """
    edits: list[Edit] = []
    rest: list[str] = []
    at = 0
    while at < len(lines):
        if _BEGIN.match(lines[at]):
            at += 1
        elif (file := _FILE.match(lines[at])) is None:
            rest.append(lines[at])
            at += 1
        else:
            end = next((n for n in range(at + 1, len(lines)) if _ends(lines[n])), len(lines))
            if end == len(lines) and not (ends_with_newline and _balanced(lines[at + 1 : end])):
                return Taken((), (), CUT_OFF)
            body = _without_header(list(lines[at + 1 : end]))
            text = "\n".join((f"*** {file['what']} File: {clean(file['path'])}", *body, ""))
            path = clean(file["path"].strip("`\"'"))
            edits.append(Edit(kind=EditKind.envelope, path=path, text=text, number=len(edits) + 1))
            at = end + (end < len(lines) and bool(_END.match(lines[end])))
    return Taken(tuple(edits), tuple(rest))


def _ends(line: str) -> bool:
    return bool(_END.match(line) or _FILE.match(line) or _WORD.match(line) or _BEGIN.match(line)) or is_fence(line)


def _balanced(body: Sequence[str]) -> bool:
    hunks = of_diff(body)
    marks = [line.mark for line in hunks[-1].lines] if hunks else []
    if not any(mark != STAYS for mark in marks):
        return False
    before = next(n for n, mark in enumerate(marks) if mark != STAYS)
    behind = next(n for n, mark in enumerate(reversed(marks)) if mark != STAYS)
    return before == behind >= 2


def _without_header(body: list[str]) -> list[str]:
    """Without the header of a unified diff, which some write besides."""
    if len(body) >= 2 and body[0].startswith("--- ") and body[1].startswith("+++ "):
        return body[2:]
    return body
