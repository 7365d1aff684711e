"""From a model's words to edits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from redstart.core.change import Edit, EditKind
from redstart.core.learning import Reflection
from redstart.core.noun import clip

_BLOCK = re.compile(
    r"^<{5,9} ?SEARCH[^\n]*\n(?P<search>.*?)^={5,9}[ \t]*\n(?P<text>.*?)^>{5,9} ?REPLACE[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_DIFF = re.compile(r"^--- (?P<old>[^\n]+)\n\+\+\+ (?P<new>[^\n]+)\n(?=@@ )", re.MULTILINE)
_HUNK_LINE = re.compile(r"^(?:@@ .*|[ +\-\\].*|)$")
_LABEL = re.compile(r"^[ \t>*#-]*(?P<label>WHY|ROOT CAUSE|WHAT FAILED|TRY NEXT)[ \t*]*:[ \t*]*(?P<text>.+)$", re.M)
_AROUND_PATH = "`*\"' \t#:"


class Parsed(NamedTuple):
    """`fault` says why there is no edit, in words that can go back to the model."""

    edits: tuple[Edit, ...]
    why: str = ""
    reflection: Reflection | None = None
    fault: str = ""


def parse(answer: str) -> Parsed:
    """The edits in an answer, whatever prose or fences are around them. Never raises."""
    answer = answer.replace("\r\n", "\n")
    labels = {found["label"]: clip(found["text"].strip(), 400) for found in _LABEL.finditer(answer)}
    edits: list[Edit] = []
    for found in _BLOCK.finditer(answer):
        path = _path_above(answer[: found.start()])
        if not path:
            return Parsed((), fault="a search/replace block has no file path on the line above it")
        edits.append(Edit(kind=EditKind.block, path=path, search=found["search"], text=found["text"]))
    edits += _diffs(_BLOCK.sub("", answer))
    fault = "" if edits else _why_none(answer)
    reflection = Reflection(
        root_cause=labels.get("ROOT CAUSE", ""),
        what_failed=labels.get("WHAT FAILED", ""),
        try_next=labels.get("TRY NEXT", ""),
    )
    said = reflection if any((reflection.root_cause, reflection.what_failed, reflection.try_next)) else None
    return Parsed(tuple(edits), labels.get("WHY", ""), said, fault)


def fingerprint(edits: Sequence[Edit]) -> str:
    """The same for the same change: blanks at the ends of lines and the order of edits do not count."""
    parts = sorted("\x1f".join((edit.path, _trim(edit.search), _trim(edit.text))) for edit in edits)
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:32] if parts else ""


def paths(edits: Sequence[Edit]) -> tuple[str, ...]:
    """The files that the edits name."""
    named: set[str] = set()
    for edit in edits:
        if edit.path:
            named.add(edit.path)
        for found in _DIFF.finditer(edit.text if edit.kind is EditKind.diff else ""):
            named |= {name[2:] for name in (found["old"], found["new"]) if name[:2] in ("a/", "b/")}
    return tuple(sorted(named))


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def _path_above(text: str) -> str:
    for line in reversed(text.split("\n")[-6:]):
        shown = re.sub(r"^(?:file|path)\s*:", "", line.strip(_AROUND_PATH), flags=re.IGNORECASE).strip(_AROUND_PATH)
        if shown and not line.lstrip().startswith("```"):
            return shown.removeprefix("./") if " " not in shown else ""
    return ""


def _diffs(text: str) -> list[Edit]:
    bounds = [*(found.start() for found in _DIFF.finditer(text)), len(text)]
    return [Edit(kind=EditKind.diff, text=_one_diff(text[start:end])) for start, end in pairwise(bounds)]


def _one_diff(text: str) -> str:
    """The diff at the start of `text`, with git's a/ and b/ before its paths, without what follows it."""
    old, new, *body = text.split("\n")
    kept: list[str] = []
    for line in body:
        if not _HUNK_LINE.match(line) or line.startswith("diff --git"):
            break
        kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return "\n".join((_header(old, "a/"), _header(new, "b/"), *kept)) + "\n"


def _header(line: str, prefix: str) -> str:
    mark, name = line[:4], line[4:].split("\t", maxsplit=1)[0].strip()
    return mark + (name if name == "/dev/null" or name.startswith(prefix) else prefix + name)


def _why_none(answer: str) -> str:
    if not answer.strip():
        return "the answer was empty"
    if "<<<<<" in answer or "SEARCH" in answer:
        return "the answer has a search/replace block that is not complete (SEARCH, =======, REPLACE)"
    return "the answer holds no edit: no search/replace block and no unified diff"
