"""Parses a model's answer into edits: from lists, quotations, JSON strings, diffs, envelopes and fenced files."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditKind
from redstart.core.learning import Reflection
from redstart.core.noun import clip
from redstart.toolkit.patching.hunks import STAYS, of_diff
from redstart.toolkit.patching.reading.blocks import (
    NOT_COMPLETE,
    CodeFence,
    ParsedBlocks,
    blocks,
    clean,
    fences,
    is_fence,
    path_above,
    path_in,
    path_in_info,
)
from redstart.toolkit.patching.reading.unnamed import unnamed

_FENCE = re.compile(r"^(?P<margin> {2,})(?P<fence>`{3,}|~{3,})")
_DIFF = re.compile(r"^(?P<margin>[ \t]+|(?:> ?)+)(?:--- \S|diff --git |\*\*\* (?:Begin Patch|Update File|Add File))")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_MARKS = ("*** Begin Patch", "*** Update File", "<<<<<<< ", "\n+++ ", "\n@@")


def outdented(answer: str) -> str:
    """Move fenced passages and patches that are indented or quoted as a whole to the left margin."""
    lines = answer.split("\n")
    made: list[str] = []
    at = 0
    while at < len(lines):
        begun = _FENCE.match(lines[at]) or _DIFF.match(lines[at])
        if begun is None:
            made.append(lines[at])
            at += 1
            continue
        margin, end = begun["margin"], at + 1
        fence = begun.groupdict().get("fence")
        while end < len(lines) and (lines[end].startswith(margin) or not lines[end].strip(" >")):
            end += 1
            if fence and lines[end - 1].strip() == fence:
                break
        made += [line[len(margin) :] if line.startswith(margin) else "" for line in lines[at:end]]
        at = end
    return "\n".join(made)


def from_json(answer: str) -> str:
    """Decode the JSON strings of an answer that contain edits; empty if there are none."""
    found: list[str] = []
    for string in _STRING.finditer(answer):
        if "\\n" not in string[0]:
            continue
        try:
            text = json.loads(string[0], strict=False)
        except ValueError:
            continue
        if any(mark in f"\n{text}" for mark in _MARKS):
            found.append(text)
    return "\n".join(found)


CUT_OFF = "the answer ends in the middle of a file: its fence is not closed"


def wholes(lines: Sequence[str]) -> ParsedBlocks:
    edits: list[Edit] = []
    for fence in _merged(lines):
        path = path_in_info(fence.info) or path_above(lines, fence.start - 1, reach=3)
        body = list(lines[fence.start : fence.stop])
        if all(line.startswith(fence.margin) or not line.strip() for line in body):
            body = [line.removeprefix(fence.margin) for line in body]
        if not path and body and body[0].lstrip().startswith(("#", "//")):
            path = path_in(body[0].lstrip("#/ "))
            body = body[1:] if path else body
        if not path or not any(line.strip() for line in body):
            continue
        if not fence.closed:
            return ParsedBlocks((), (), CUT_OFF)
        text = "".join(f"{line}\n" for line in body)
        edits.append(Edit(kind=EditKind.whole, path=path, text=text, number=len(edits) + 1))
    if len({edit.path for edit in edits}) < len(edits):
        return ParsedBlocks((), (), "the answer gives a file more than once")
    return ParsedBlocks(tuple(edits), ())


def _merged(lines: Sequence[str]) -> list[CodeFence]:
    """Find fenced passages; one that contains fences extends to the last closing fence before the next path."""
    found: list[CodeFence] = []
    for fence in fences(lines):
        last = found[-1] if found else None
        named = path_in_info(fence.info) or path_above(lines, fence.start - 1, reach=3)
        if last is not None and not named and _inside(lines, last, fence):
            found[-1] = last._replace(stop=fence.stop, closed=fence.closed)
        else:
            found.append(fence)
    return found


def _inside(lines: Sequence[str], outer: CodeFence, fence: CodeFence) -> bool:
    """Return whether the text between two passages belongs to the file: an unmatched fence and no prose."""
    return fence.start - 1 == outer.stop + 1 and is_fence(lines[outer.stop])


_BEGIN = re.compile(r"^\s*\*{3} Begin Patch\s*$", re.IGNORECASE)
_END = re.compile(r"^\s*\*{3} End Patch\s*$", re.IGNORECASE)
_FILE = re.compile(r"^\*{3} (?P<what>Update|Add|Delete) File: *(?P<path>.+?)\s*$")
_WORD = re.compile(r"^(?:EOF|PATCH|EOS)['\"]?\s*$")

ENVELOPE_CUT_OFF = "the answer has a patch that is cut off: it ends without *** End Patch"


def envelopes(lines: Sequence[str], ends_with_newline: bool) -> ParsedBlocks:
    """Parse one edit per file from the envelopes in an answer.

    A patch without its last line is accepted if a fence or a word closes it, or if its last hunk has as much context
    after its changes as before them.
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
                return ParsedBlocks((), (), ENVELOPE_CUT_OFF)
            body = _without_header(list(lines[at + 1 : end]))
            text = "\n".join((f"*** {file['what']} File: {clean(file['path'])}", *body, ""))
            path = clean(file["path"].strip("`\"'"))
            edits.append(Edit(kind=EditKind.envelope, path=path, text=text, number=len(edits) + 1))
            at = end + (end < len(lines) and bool(_END.match(lines[end])))
    return ParsedBlocks(tuple(edits), tuple(rest))


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
    """Drop the header of a unified diff, which some models add."""
    if len(body) >= 2 and body[0].startswith("--- ") and body[1].startswith("+++ "):
        return body[2:]
    return body


_OLD = re.compile(r"^--- +(?P<path>[^\s].*)$")
_NEW = re.compile(r"^\+\+\+ +(?P<path>[^\s].*)$")
_GIT = re.compile(r"^diff --git (?P<old>\S+) (?P<new>\S+)$")
_ABOUT = re.compile(
    r"^(?:index |(?:old|new|deleted file|new file) mode |similarity |rename |copy |Binary |GIT binary )"
)
_NOWHERE = "/dev/null"


def diffs(lines: Sequence[str], ends_with_newline: bool) -> tuple[Edit, ...]:
    """Parse one edit per file from unified diffs, with a normalized header and all text up to the next header."""
    fenced = list(fences(lines))
    edits: list[Edit] = []
    at = 0
    while at < len(lines):
        header = _header(lines, at, in_diff_fence=any(f.start == at and f.info.startswith("diff") for f in fenced))
        if header is None:
            at += 1
            continue
        old, new, about, body = header
        end = next((n for n in range(body, len(lines)) if _stops(lines, n)), len(lines))
        fence = next((f for f in fenced if f.start <= at < f.stop), None)
        closed = fence is not None and fence.closed
        path = new if new != _NOWHERE else old
        text = "\n".join((*about, f"--- {old}", f"+++ {new}", *lines[body:end]))
        whole = end < len(lines) or ends_with_newline
        edits.append(
            Edit(
                kind=EditKind.diff,
                path=path,
                text=text + ("\n" if whole else ""),
                number=len(edits) + 1,
                closed=closed,
            )
        )
        at = end
    return tuple(edits)


def _header(lines: Sequence[str], at: int, *, in_diff_fence: bool) -> tuple[str, str, tuple[str, ...], int] | None:
    """Parse old path, new path, extra git lines, and the line where the hunks begin; None if no diff begins here."""
    about: list[str] = []
    named = _GIT.match(lines[at])
    n = at
    if named:
        n += 1
        while n < len(lines) and _ABOUT.match(lines[n]):
            about.append(lines[n])
            n += 1
    old = _OLD.match(lines[n]) if n < len(lines) else None
    new = _NEW.match(lines[n + 1]) if old and n + 1 < len(lines) else None
    if old and new:
        pair = _plain(old["path"], "a/"), _plain(new["path"], "b/")
        return (*pair, tuple(about), n + 2) if _begins(lines, n + 2) else None
    if named:
        return _plain(named["old"], "a/"), _plain(named["new"], "b/"), tuple(about), n
    if in_diff_fence and lines[at].startswith("@@") and (path := path_above(lines, at)):
        return path, path, (), at
    return None


def _begins(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and lines[at][:1] in ("@", " ", "+", "-", "")


def _stops(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if is_fence(line) or _GIT.match(line):
        return True
    follows = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(_OLD.match(line) and _NEW.match(follows))


def _plain(name: str, prefix: str) -> str:
    path = name.split("\t", maxsplit=1)[0].strip()
    if path.startswith('"'):
        return path
    path = re.sub(r" +\d{4}-\d\d-\d\d.*$", "", path).strip("`")
    return path if path == _NOWHERE else clean(path.removeprefix(prefix))


_LABEL = re.compile(
    r"^[ \t>*#-]*(?P<label>WHY|ROOT CAUSE|WHAT FAILED|TRY NEXT|TEST CHANGE)[ \t*]*:[ \t*]*(?P<text>.+)$", re.MULTILINE
)

MOST_CHARACTERS, MOST_EDITS = 1_000_000, 300
"""Limits for one answer. Nobody reads a larger fix, and parsing it would take minutes."""


class ParsedPatch(NamedTuple):
    """The edits of an answer. `fault` says why there is none, in words that can go back to the model."""

    edits: tuple[Edit, ...]
    why: str = ""
    reflection: Reflection | None = None
    fault: str = ""
    test_change: str = ""
    """Why a test would have to change, if the answer says so."""
    unchanged: bool = False
    """Whether there is no edit because the answer returns files unchanged."""


def parse(answer: str, shown: Mapping[str, str] | None = None) -> ParsedPatch:
    """Parse the edits in an answer, whatever prose or fences surround them. Never raises.

    One truncated edit makes the whole answer unusable: a partial change is not applied. `shown` are the files that
    the model saw and may change, by path: code that names none of them may still belong to one.
    """
    if len(answer) > MOST_CHARACTERS:
        return ParsedPatch((), fault=f"the answer is longer than {MOST_CHARACTERS} characters: give only what changes")
    answer = answer.replace("\r\n", "\n")
    labels = {found["label"]: clip(found["text"].strip(), 400) for found in _LABEL.finditer(answer)}
    edits, fault = _edits(answer)
    for unwrapped in (outdented(answer), html.unescape(answer), from_json(answer)):
        if not edits and unwrapped not in ("", answer):
            edits, other = _edits(unwrapped)
            fault = fault or other
    if not edits and shown:
        edits = unnamed(answer, shown)
    if len(edits) > MOST_EDITS:
        edits, fault = (), f"the answer holds {len(edits)} edits: at most {MOST_EDITS} can be made at once"
    reflection = Reflection(
        root_cause=labels.get("ROOT CAUSE", ""),
        what_failed=labels.get("WHAT FAILED", ""),
        try_next=labels.get("TRY NEXT", ""),
    )
    said = reflection if any((reflection.root_cause, reflection.what_failed, reflection.try_next)) else None
    fault = "" if edits else fault or _why_none(answer)
    return ParsedPatch(edits, labels.get("WHY", ""), said, fault, labels.get("TEST CHANGE", ""))


def fingerprint(edits: Sequence[Edit]) -> str:
    """Hash edits so that equal changes have equal values; trailing whitespace and the order of edits do not matter."""
    parts = sorted("\x1f".join((edit.path, _trim(edit.search), _trim(edit.text))) for edit in edits)
    return hashlib.sha256("\x1e".join(parts).encode(errors="replace")).hexdigest()[:32] if parts else ""


def paths(edits: Sequence[Edit]) -> tuple[str, ...]:
    """List the files that the edits name."""
    return tuple(sorted({edit.path for edit in edits}))


def _edits(answer: str) -> tuple[tuple[Edit, ...], str]:
    lines = answer.removesuffix("\n").split("\n")
    enclosed = envelopes(lines, answer.endswith("\n"))
    searched = blocks(enclosed.rest) if not enclosed.fault else enclosed
    if searched.fault:
        return (), searched.fault
    found = (*enclosed.edits, *searched.edits, *diffs(searched.rest, answer.endswith("\n")))
    if found:
        return tuple(edit.model_copy(update={"number": number}) for number, edit in enumerate(found, 1)), ""
    whole = wholes(lines)
    return whole.edits, whole.fault


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def _why_none(answer: str) -> str:
    if not answer.strip():
        return "the answer was empty"
    if "<<<<<" in answer or "SEARCH" in answer:
        return NOT_COMPLETE
    return "the answer holds no edit: no search/replace block, no diff and no whole file"
