"""Taking an answer out of what it was wrapped in: a list, a quotation, a string of JSON."""

from __future__ import annotations

import json
import re

_FENCE = re.compile(r"^(?P<margin> {2,})(?P<fence>`{3,}|~{3,})")
_DIFF = re.compile(r"^(?P<margin>[ \t]+|(?:> ?)+)(?:--- \S|diff --git |\*\*\* (?:Begin Patch|Update File|Add File))")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_MARKS = ("*** Begin Patch", "*** Update File", "<<<<<<< ", "\n+++ ", "\n@@")


def outdented(answer: str) -> str:
    """Fenced passages and patches that stand indented or quoted as a whole, moved to the left margin."""
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
    """The strings of an answer that hold edits, decoded; empty where there are none."""
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
