"""Parse a model's answer into edits: from lists, quotations, JSON strings, diffs, envelopes and fenced files."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.change import Edit, EditKind
from redstart.core.frozen import clip
from redstart.core.learning import Reflection
from redstart.toolkit.patching.hunks import STAYS, parse_hunks
from redstart.toolkit.patching.reading.blocks import (
    NOT_COMPLETE,
    CodeFence,
    ParsedBlocks,
    clean,
    find_fences,
    find_path,
    find_path_above,
    find_path_in_info,
    is_fence,
    parse_blocks,
)
from redstart.toolkit.patching.reading.unnamed_blocks import find_unnamed_edit

_FENCE = re.compile(r"^(?P<margin> {2,})(?P<fence>`{3,}|~{3,})")
_DIFF = re.compile(r"^(?P<margin>[ \t]+|(?:> ?)+)(?:--- \S|diff --git |\*\*\* (?:Begin Patch|Update File|Add File))")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_MARKS = ("*** Begin Patch", "*** Update File", "<<<<<<< ", "\n+++ ", "\n@@")


def dedent_passages(answer: str) -> str:
    """Move fenced passages and patches that are indented or quoted as a whole to the left margin."""
    lines = answer.split("\n")
    result: list[str] = []
    index = 0
    while index < len(lines):
        match = _FENCE.match(lines[index]) or _DIFF.match(lines[index])
        if match is None:
            result.append(lines[index])
            index += 1
            continue
        margin, end = match["margin"], index + 1
        fence = match.groupdict().get("fence")
        while end < len(lines) and (lines[end].startswith(margin) or not lines[end].strip(" >")):
            end += 1
            if fence and lines[end - 1].strip() == fence:
                break
        result += [line[len(margin) :] if line.startswith(margin) else "" for line in lines[index:end]]
        index = end
    return "\n".join(result)


def from_json(answer: str) -> str:
    """Decode the JSON strings of an answer that contain edits; empty if there are none."""
    texts: list[str] = []
    for string in _STRING.finditer(answer):
        if "\\n" not in string[0]:
            continue
        try:
            text = json.loads(string[0], strict=False)
        except ValueError:
            continue
        if any(mark in f"\n{text}" for mark in _MARKS):
            texts.append(text)
    return "\n".join(texts)


CUT_OFF = "the answer ends in the middle of a file: its fence is not closed"


def parse_whole_files(lines: Sequence[str]) -> ParsedBlocks:
    edits: list[Edit] = []
    for fence in _merge_fences(lines):
        path = find_path_in_info(fence.info) or find_path_above(lines, fence.start - 1, max_distance=3)
        body = list(lines[fence.start : fence.stop])
        if all(line.startswith(fence.indent) or not line.strip() for line in body):
            body = [line.removeprefix(fence.indent) for line in body]
        if not path and body and body[0].lstrip().startswith(("#", "//")):
            path = find_path(body[0].lstrip("#/ "))
            body = body[1:] if path else body
        if not path or not any(line.strip() for line in body):
            continue
        if not fence.is_closed:
            return ParsedBlocks((), (), CUT_OFF)
        text = "".join(f"{line}\n" for line in body)
        edits.append(Edit(kind=EditKind.whole, path=path, text=text, number=len(edits) + 1))
    if len({edit.path for edit in edits}) < len(edits):
        return ParsedBlocks((), (), "the answer gives a file more than once")
    return ParsedBlocks(tuple(edits), ())


def _merge_fences(lines: Sequence[str]) -> list[CodeFence]:
    """Find fenced passages; one that contains fences extends to the last closing fence before the next path."""
    merged: list[CodeFence] = []
    for fence in find_fences(lines):
        last = merged[-1] if merged else None
        path = find_path_in_info(fence.info) or find_path_above(lines, fence.start - 1, max_distance=3)
        if last is not None and not path and _is_inside(lines, last, fence):
            merged[-1] = last._replace(stop=fence.stop, is_closed=fence.is_closed)
        else:
            merged.append(fence)
    return merged


def _is_inside(lines: Sequence[str], outer: CodeFence, fence: CodeFence) -> bool:
    """Return whether the text between two passages belongs to the file: an unmatched fence and no prose."""
    return fence.start - 1 == outer.stop + 1 and is_fence(lines[outer.stop])


_PATCH_START = re.compile(r"^\s*\*{3} Begin Patch\s*$", re.IGNORECASE)
_END = re.compile(r"^\s*\*{3} End Patch\s*$", re.IGNORECASE)
_FILE = re.compile(r"^\*{3} (?P<what>Update|Add|Delete) File: *(?P<path>.+?)\s*$")
_WORD = re.compile(r"^(?:EOF|PATCH|EOS)['\"]?\s*$")

ENVELOPE_CUT_OFF = "the answer has a patch that is cut off: it ends without *** End Patch"


def parse_envelopes(lines: Sequence[str], ends_with_newline: bool) -> ParsedBlocks:
    """Parse one edit per file from the envelopes in an answer.

    A patch without its last line is accepted if a fence or a word closes it, or if its last hunk has as much context
    after its changes as before them.
    """
    edits: list[Edit] = []
    rest: list[str] = []
    index = 0
    while index < len(lines):
        if _PATCH_START.match(lines[index]):
            index += 1
        elif (file := _FILE.match(lines[index])) is None:
            rest.append(lines[index])
            index += 1
        else:
            end = next((n for n in range(index + 1, len(lines)) if _is_envelope_end(lines[n])), len(lines))
            if end == len(lines) and not (ends_with_newline and _is_balanced(lines[index + 1 : end])):
                return ParsedBlocks((), (), ENVELOPE_CUT_OFF)
            body = _without_header(list(lines[index + 1 : end]))
            text = "\n".join((f"*** {file['what']} File: {clean(file['path'])}", *body, ""))
            path = clean(file["path"].strip("`\"'"))
            edits.append(Edit(kind=EditKind.envelope, path=path, text=text, number=len(edits) + 1))
            index = end + (end < len(lines) and bool(_END.match(lines[end])))
    return ParsedBlocks(tuple(edits), tuple(rest))


def _is_envelope_end(line: str) -> bool:
    return bool(_END.match(line) or _FILE.match(line) or _WORD.match(line) or _PATCH_START.match(line)) or is_fence(
        line
    )


def _is_balanced(body: Sequence[str]) -> bool:
    hunks = parse_hunks(body)
    marks = [line.mark for line in hunks[-1].lines] if hunks else []
    if not any(mark != STAYS for mark in marks):
        return False
    before = next(n for n, mark in enumerate(marks) if mark != STAYS)
    after = next(n for n, mark in enumerate(reversed(marks)) if mark != STAYS)
    return before == after >= 2


def _without_header(body: list[str]) -> list[str]:
    """Drop the header of a unified diff, which some models add."""
    if len(body) >= 2 and body[0].startswith("--- ") and body[1].startswith("+++ "):
        return body[2:]
    return body


_OLD = re.compile(r"^--- +(?P<path>[^\s].*)$")
_NEW = re.compile(r"^\+\+\+ +(?P<path>[^\s].*)$")
_GIT = re.compile(r"^diff --git (?P<old>\S+) (?P<new>\S+)$")
_DIFF_METADATA = re.compile(
    r"^(?:index |(?:old|new|deleted file|new file) mode |similarity |rename |copy |Binary |GIT binary )"
)
_NOWHERE = "/dev/null"


def parse_diffs(lines: Sequence[str], ends_with_newline: bool) -> tuple[Edit, ...]:
    """Parse one edit per file from unified diffs, with a normalized header and all text up to the next header."""
    passages = list(find_fences(lines))
    edits: list[Edit] = []
    index = 0
    while index < len(lines):
        header = _parse_header(
            lines, index, in_diff_fence=any(f.start == index and f.info.startswith("diff") for f in passages)
        )
        if header is None:
            index += 1
            continue
        old, new, git_lines, body = header
        end = next((n for n in range(body, len(lines)) if _is_body_end(lines, n)), len(lines))
        fence = next((f for f in passages if f.start <= index < f.stop), None)
        closed = fence is not None and fence.is_closed
        path = new if new != _NOWHERE else old
        text = "\n".join((*git_lines, f"--- {old}", f"+++ {new}", *lines[body:end]))
        is_complete = end < len(lines) or ends_with_newline
        edits.append(
            Edit(
                kind=EditKind.diff,
                path=path,
                text=text + ("\n" if is_complete else ""),
                number=len(edits) + 1,
                closed=closed,
            )
        )
        index = end
    return tuple(edits)


def _parse_header(
    lines: Sequence[str], index: int, *, in_diff_fence: bool
) -> tuple[str, str, tuple[str, ...], int] | None:
    """Parse old path, new path, extra git lines, and the line where the hunks begin; None if no diff begins here."""
    git_lines: list[str] = []
    git_match = _GIT.match(lines[index])
    n = index
    if git_match:
        n += 1
        while n < len(lines) and _DIFF_METADATA.match(lines[n]):
            git_lines.append(lines[n])
            n += 1
    old = _OLD.match(lines[n]) if n < len(lines) else None
    new = _NEW.match(lines[n + 1]) if old and n + 1 < len(lines) else None
    if old and new:
        pair = _normalize_path(old["path"], "a/"), _normalize_path(new["path"], "b/")
        return (*pair, tuple(git_lines), n + 2) if _is_body_start(lines, n + 2) else None
    if git_match:
        return _normalize_path(git_match["old"], "a/"), _normalize_path(git_match["new"], "b/"), tuple(git_lines), n
    if in_diff_fence and lines[index].startswith("@@") and (path := find_path_above(lines, index)):
        return path, path, (), index
    return None


def _is_body_start(lines: Sequence[str], index: int) -> bool:
    return index < len(lines) and lines[index][:1] in ("@", " ", "+", "-", "")


def _is_body_end(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if is_fence(line) or _GIT.match(line):
        return True
    next_line = lines[index + 1] if index + 1 < len(lines) else ""
    return bool(_OLD.match(line) and _NEW.match(next_line))


def _normalize_path(name: str, prefix: str) -> str:
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
    reason: str = ""
    reflection: Reflection | None = None
    fault: str = ""
    test_change: str = ""
    """Why a test would have to change, if the answer says so."""
    unchanged: bool = False
    """Whether there is no edit because the answer returns files unchanged."""


def parse(answer: str, shown_files: Mapping[str, str] | None = None) -> ParsedPatch:
    """Parse the edits in an answer, whatever prose or fences surround them. Never raises.

    One truncated edit makes the whole answer unusable: a partial change is not applied. `shown_files` are the files
    that the model saw and may change, by path: code that names none of them may still belong to one.
    """
    if len(answer) > MOST_CHARACTERS:
        return ParsedPatch((), fault=f"the answer is longer than {MOST_CHARACTERS} characters: give only what changes")
    answer = answer.replace("\r\n", "\n")
    labels = {match["label"]: clip(match["text"].strip(), 400) for match in _LABEL.finditer(answer)}
    edits, fault = _parse_edits(answer)
    for unwrapped in (dedent_passages(answer), html.unescape(answer), from_json(answer)):
        if not edits and unwrapped not in ("", answer):
            edits, other_fault = _parse_edits(unwrapped)
            fault = fault or other_fault
    if not edits and shown_files:
        edits = find_unnamed_edit(answer, shown_files)
    if len(edits) > MOST_EDITS:
        edits, fault = (), f"the answer holds {len(edits)} edits: at most {MOST_EDITS} can be made at once"
    reflection = Reflection(
        root_cause=labels.get("ROOT CAUSE", ""),
        what_failed=labels.get("WHAT FAILED", ""),
        try_next=labels.get("TRY NEXT", ""),
    )
    given_reflection = reflection if any((reflection.root_cause, reflection.what_failed, reflection.try_next)) else None
    fault = "" if edits else fault or _explain_missing_edits(answer)
    return ParsedPatch(edits, labels.get("WHY", ""), given_reflection, fault, labels.get("TEST CHANGE", ""))


def fingerprint(edits: Sequence[Edit]) -> str:
    """Hash edits so that equal changes have equal values; trailing whitespace and the order of edits do not matter."""
    parts = sorted("\x1f".join((edit.path, _trim(edit.search), _trim(edit.text))) for edit in edits)
    return hashlib.sha256("\x1e".join(parts).encode(errors="replace")).hexdigest()[:32] if parts else ""


def list_paths(edits: Sequence[Edit]) -> tuple[str, ...]:
    """List the files that the edits name."""
    return tuple(sorted({edit.path for edit in edits}))


def _parse_edits(answer: str) -> tuple[tuple[Edit, ...], str]:
    lines = answer.removesuffix("\n").split("\n")
    enclosed = parse_envelopes(lines, answer.endswith("\n"))
    searched = parse_blocks(enclosed.remaining_lines) if not enclosed.fault else enclosed
    if searched.fault:
        return (), searched.fault
    parsed = (*enclosed.edits, *searched.edits, *parse_diffs(searched.remaining_lines, answer.endswith("\n")))
    if parsed:
        return tuple(edit.model_copy(update={"number": number}) for number, edit in enumerate(parsed, 1)), ""
    whole_files = parse_whole_files(lines)
    return whole_files.edits, whole_files.fault


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def _explain_missing_edits(answer: str) -> str:
    if not answer.strip():
        return "the answer was empty"
    if "<<<<<" in answer or "SEARCH" in answer:
        return NOT_COMPLETE
    return "the answer holds no edit: no search/replace block, no diff and no whole file"
